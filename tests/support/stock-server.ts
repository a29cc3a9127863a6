/** An application over the stock SDK's class in real workerd, over the real engine. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { EngineHost, type HostOptions } from "../../js/src/engine/host.ts";
import { sandboxdPath } from "../../js/src/engine/sandboxd-path.ts";
import { startWorkerd } from "../../js/src/node/workerd.ts";
import { workerBundle } from "../../scripts/bundle-worker.ts";

export interface StockServerOptions {
  /** The application: exports `Sandbox`, `ContainerProxy` and a default handler. */
  worker: URL;
  transport: string;
  limits?: ReturnType<HostOptions["limits"]>;
  upstreams?: Record<string, string>;
  upstreamCa?: string;
}

export interface StockServer extends AsyncDisposable {
  readonly logs: string[];
  /** What the application answers to a GET, as JSON. */
  ask<T>(path: string, query?: Record<string, string>): Promise<T>;
}

const secret = "a secret of this server alone";
/** Far above what any request takes: only a hang reaches it. */
const requestMs = 60_000;

/** The Worker in a file, as wrangler would bundle it. */
async function bundle(worker: URL, outfile: string): Promise<void> {
  await build({ ...workerBundle, entryPoints: [worker.pathname], outfile, logLevel: "error" });
}

export async function startStockServer(options: StockServerOptions): Promise<StockServer> {
  const folder = await mkdtemp(join(tmpdir(), "stock-"));
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
    const path = join(folder, "index.js");
    await bundle(options.worker, path);
    const { upstreamCa } = options;
    const limits = { memoryBytes: 2 ** 30, cpuWeight: 100, cpuQuota: 2, pids: 1024, diskBytes: 4e9 };
    const host = await EngineHost.start({
      sandboxd: await sandboxdPath(),
      runtimeDir: join(folder, "run"),
      scratchDir: join(folder, "scratch"),
      secret,
      limits: () => options.limits ?? limits,
      outbound: {
        upstreams: options.upstreams ?? {},
        ...(upstreamCa === undefined ? {} : { upstreamCa }),
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
        bindings: { ENGINE_SECRET: secret, ENGINE_MODE: "embedded", SANDBOX_TRANSPORT: options.transport },
        serviceBindings: { ENGINE: { external: { address: `unix:${host.engineSocket}`, http: {} } } },
      },
      { host: "127.0.0.1", port: 0 },
      log,
    );
    closers.push(() => workerd.close());
    host.connectWorker({ hostname: workerd.url.hostname, port: Number(workerd.url.port) });
    await host.ready;
    const ask = async <T>(path: string, query: Record<string, string> = {}): Promise<T> => {
      const response = await fetch(new URL(`${path}?${new URLSearchParams(query)}`, workerd.url), {
        signal: AbortSignal.timeout(requestMs),
      });
      if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
      return (await response.json()) as T;
    };
    return { logs, ask, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}
