/** The application of `worker.ts` with one transport of the SDK, and a repository that it can clone. */
import { gitServer } from "../../support/git-server.ts";
import { startStockServer } from "../../support/stock-server.ts";
import { startTlsUpstream } from "../../support/upstream.ts";
import type { Transport } from "./case.ts";

export interface ConformanceServer extends AsyncDisposable {
  /** Runs one case: null, or how it failed. */
  run(method: string, title: string): Promise<string | null>;
  /** What the SDK's prototype and a session of its have, by name. */
  names(): Promise<{ Sandbox: string[]; ExecutionSession: string[] }>;
}

export async function startConformanceServer(transport: Transport): Promise<ConformanceServer> {
  const git = gitServer("acme/repo");
  const upstream = await startTlsUpstream(["git.test"], git.listener);
  const server = await startStockServer({
    worker: new URL("worker.ts", import.meta.url),
    transport,
    upstreams: { "git.test": upstream.address },
    upstreamCa: upstream.caPem,
  });
  return {
    run: async (method, title) =>
      (await server.ask<{ failure: string | null }>("/run", { method, title })).failure,
    names: () => server.ask("/names"),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await upstream.close();
      git.close();
    },
  };
}
