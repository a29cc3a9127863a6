/** The example that explains what a sandbox is, nearly word for word. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GitServer, gitServer } from "../support/git-server.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startTlsUpstream, type Upstream } from "../support/upstream.ts";

let git: GitServer;
let upstream: Upstream;
let server: TestServer;

beforeAll(async () => {
  git = gitServer("acme/repo");
  upstream = await startTlsUpstream(["github.com"], git.listener);
  server = await startTestServer({
    upstreams: { "github.com": upstream.address },
    upstreamCa: upstream.caPem,
  });
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
  git?.close();
});

test("create, exec, gitCheckout, startProcess, sleep, start, destroy, list", async () => {
  const itx = await server.itx("prj_seed");
  const path = "/sandboxes/main";
  const sandbox = await itx.sandboxes.get(path).create({ instanceType: "basic" });

  const hi = await sandbox.exec("echo hi");
  expect(hi.stdout).toBe("hi\n");
  const checkout = await sandbox.gitCheckout("https://github.com/acme/repo", {
    targetDir: "/workspace/repo",
  });
  expect(checkout.success).toBe(true);
  const process = await sandbox.startProcess("node -e 'setInterval(() => {}, 1000)'");
  expect((await sandbox.listProcesses()).map(({ id }) => id)).toContain(process.id);

  await sandbox.sleep();
  await sandbox.start();
  const { content } = await sandbox.readFile("/workspace/repo/README.md");
  expect(content).toBe("# A repository\n");
  await sandbox.destroy();

  const { sandboxes } = await itx.sandboxes.list();
  expect(sandboxes).toMatchObject([{ path, instanceType: "basic", status: "destroyed" }]);
});
