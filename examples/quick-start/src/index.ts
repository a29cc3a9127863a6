/** The quick start of @cloudflare/sandbox. Only the module that the class is exported from is another. */
import { getSandbox } from "@cloudflare/sandbox";
import type { Sandbox } from "iterate-sandboxes/engine";

export { Sandbox } from "iterate-sandboxes/engine";

interface Env {
  Sandbox: DurableObjectNamespace<Sandbox>;
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    const sandbox = getSandbox(env.Sandbox, "my-first-sandbox");
    if (pathname === "/run") {
      const result = await sandbox.exec('python3 -c "print(2 + 2)"');
      return Response.json({ output: result.stdout, success: result.success, exitCode: result.exitCode });
    }
    if (pathname === "/file") {
      await sandbox.writeFile("/workspace/hello.txt", "Hello, Sandbox!");
      const { content } = await sandbox.readFile("/workspace/hello.txt");
      return Response.json({ content });
    }
    return new Response("Try /run or /file");
  },
} satisfies ExportedHandler<Env>;
