/** A Worker that has the sandboxes' classes in it and uses them through a service binding to itself. */

import type { Itx } from "iterate-sandboxes";
import sandboxes, { type WorkerEnv } from "iterate-sandboxes/worker";

export * from "iterate-sandboxes/worker";

interface Env extends WorkerEnv {
  /** Bound with the project's id in its props, so this Worker acts for that project alone. */
  ITX: { itx(): Promise<Itx> };
}

export default {
  async fetch(request, env, ctx) {
    const url = new URL(request.url);
    if (url.pathname !== "/run") return sandboxes.fetch(request, env, ctx);
    const itx = await env.ITX.itx();
    const sandbox = await itx.sandboxes
      .get(`/sandboxes/${crypto.randomUUID()}`)
      .create({ instanceType: "lite" });
    try {
      const { stdout, stderr, exitCode } = await sandbox.exec(url.searchParams.get("command") ?? "uname -s");
      return Response.json({ stdout, stderr, exitCode });
    } finally {
      await sandbox.destroy();
    }
  },
} satisfies ExportedHandler<Env>;
