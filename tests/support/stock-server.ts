/** The application of `worker.ts` in real workerd over the real engine, with one transport of the SDK. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { EngineHost } from "../../../js/src/engine/host.ts";
import { sandboxdPath } from "../../../js/src/engine/sandboxd-path.ts";
import { startWorkerd } from "../../../js/src/node/workerd.ts";
import { gitServer } from "../../support/git-server.ts";
import { startTlsUpstream } from "../../support/upstream.ts";
import type { Transport } from "./case.ts";

export interface ConformanceServer extends AsyncDisposable {
  readonly url: URL;
  readonly logs: string[];
  run(method: string, title: string): Promise<string | null>;
  /** What the SDK's prototype and a session of its have, by name. */
  names(): Promise<{ Sandbox: string[]; ExecutionSession: string[] }>;
}

/** Far above what any case takes: only a hang reaches it. */
const caseMs = 30_000;
const secret = "a secret of this suite alone";

/** Bundles once for all transports. */
export async function bundleWorker(folder: string): Promise<string> {
  const outfile = join(folder, "index.js");
  await build({
    entryPoints: [new URL("worker.ts", import.meta.url).pathname],
    outfile,
    bundle: true,
    format: "esm",
    platform: "neutral",
    target: "es2023",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser", "import"],
    external: ["cloudflare:*", "node:*"],
    logLevel: "error",
  });
  return outfile;
}

export async function startConformanceServer(transport: Transport): Promise<ConformanceServer> {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  const logs: string[] = [];
  const log = (line: string) => {
    logs.push(line);
    if (process.env.ITX_TEST_LOG === "1") console.error(line);
  };
  const closers: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })];
  const close = async () => {
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer();
  };
  try {
    const git = gitServer("acme/repo");
    closers.push(() => git.close());
    const upstream = await startTlsUpstream(["git.test"], git.listener);
    closers.push(() => upstream.close());
    const path = await bundleWorker(folder);
    const host = await EngineHost.start({
      sandboxd: await sandboxdPath(),
      runtimeDir: join(folder, "run"),
      scratchDir: join(folder, "scratch"),
      secret,
      limits: () => ({ memoryBytes: 2 ** 30, cpuWeight: 100, cpuQuota: 2, pids: 1024, diskBytes: 4e9 }),
      outbound: {
        upstreams: { "git.test": upstream.address },
        upstreamCa: upstream.caPem,
        classify: () => "private",
      },
      log,
    });
    closers.push(() => host.close());
    const workerd = await startWorkerd(
      {
        modules: [{ type: "ESModule", path }],
        modulesRoot: folder,
        compatibilityDate: "2026-06-01",
        compatibilityFlags: ["nodejs_compat"],
        durableObjects: { Sandbox: { className: "Sandbox", useSQLite: true } },
        durableObjectsPersist: join(folder, "storage"),
        r2Buckets: { BACKUP_BUCKET: "backups" },
        r2Persist: join(folder, "r2"),
        bindings: { ENGINE_SECRET: secret, ENGINE_MODE: "embedded", SANDBOX_TRANSPORT: transport },
        serviceBindings: { ENGINE: { external: { address: `unix:${host.engineSocket}`, http: {} } } },
      },
      { host: "127.0.0.1", port: 0 },
      log,
    );
    closers.push(() => workerd.close());
    host.connectWorker({ hostname: workerd.url.hostname, port: Number(workerd.url.port) });
    const ask = async (path: string, query: Record<string, string> = {}): Promise<unknown> => {
      const response = await fetch(new URL(`${path}?${new URLSearchParams(query)}`, workerd.url), {
        signal: AbortSignal.timeout(caseMs),
      });
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
      return await response.json();
    };
    return {
      url: workerd.url,
      logs,
      run: async (method, title) => {
        const { failure } = (await ask("/run", { method, title })) as { failure: string | null };
        return failure;
      },
      names: async () => (await ask("/names")) as { Sandbox: string[]; ExecutionSession: string[] },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
