/**
 * The embedded engine for a Worker that `wrangler dev` runs. Wrangler connects Workers that run on one machine through a registry:
 * the engine stands in it as a Worker of its own, which the application binds as the service ENGINE, and calls back into the
 * application's EngineEntrypoint the same way. No port is agreed on, and either side may start first.
 */
import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { loadCore } from "../core/index.ts";
import { compatibilityDate } from "./compatibility.ts";
import { startHost } from "./engine-host.ts";
import { loadMiniflare } from "./load-miniflare.ts";
import { openStateDir } from "./state-dir.ts";

export interface DevEngineOptions {
  /** The application's `name` in its wrangler.jsonc. */
  worker: string;
  /** For what containers write. One engine a folder; `.itx` in the working directory without it. */
  dir?: string;
  /** What the application binds as the service ENGINE; `itx-engine` without it. */
  name?: string;
  /** Wrangler's registry: WRANGLER_REGISTRY_PATH, or where wrangler keeps it, without it. */
  registry?: string;
  /** `name` or `name:port` to `address:port`: public names that are served locally. */
  upstreams?: Record<string, string>;
  /** The application's ENGINE_SECRET; a new one without it. */
  secret?: string;
  log?: (line: string) => void;
}

export interface DevEngine extends AsyncDisposable {
  /** What the application's variable ENGINE_SECRET has to be. */
  readonly secret: string;
  /** Durable Object ids of the containers that run. */
  running(): string[];
  /**
   * Asks the application to put its sandboxes to sleep, while it still runs: only it can take a snapshot. Logs each container that
   * stays without one, and why.
   */
  sleepAll(): Promise<void>;
  /** Ends every container. */
  close(): Promise<void>;
}

/** Hands what the application's objects ask to the host's socket. */
const toHost = "export default { fetch: (request, env) => env.HOST.fetch(request) };";
/** Hands what the host asks to the application, which knows its callers by the boot's secret. */
const toWorker = "export default { fetch: (request, env) => env.WORKER.fetch(request) };";

/** Starts the engine and returns when applications can bind it. @throws SandboxError `sandboxd_missing`, `state_dir_in_use` */
export async function startDevEngine(options: DevEngineOptions): Promise<DevEngine> {
  const { getDefaultDevRegistryPath, Miniflare, NoOpLog } = await loadMiniflare();
  const log = options.log ?? (() => undefined);
  const state = await openStateDir(resolve(options.dir ?? ".itx"));
  const secret = options.secret ?? randomBytes(32).toString("base64url");
  const closers: (() => Promise<void>)[] = [() => state.release()];
  const close = async () => {
    for (let closer = closers.pop(); closer !== undefined; closer = closers.pop()) await closer();
  };
  try {
    const { upstreams } = options;
    const host = await startHost({
      state,
      core: await loadCore(),
      secret,
      log,
      ...(upstreams && { upstreams }),
    });
    closers.push(() => host.close());
    const name = options.name ?? "itx-engine";
    const miniflare = new Miniflare({
      host: "127.0.0.1",
      port: 0,
      log: new NoOpLog(),
      unsafeDevRegistryPath:
        options.registry ?? process.env.WRANGLER_REGISTRY_PATH ?? getDefaultDevRegistryPath(),
      workers: [
        {
          name: `${name}-callback`,
          modules: true,
          script: toWorker,
          compatibilityDate,
          serviceBindings: { WORKER: { name: options.worker, entrypoint: "EngineEntrypoint" } },
        },
        {
          name,
          modules: true,
          script: toHost,
          compatibilityDate,
          serviceBindings: { HOST: { external: { address: `unix:${host.engineSocket}`, http: {} } } },
        },
      ],
    });
    closers.push(() => miniflare.dispose());
    const [{ hostname, port }] = await Promise.all([miniflare.ready, host.ready]);
    host.connectWorker({ hostname, port: Number(port) });
    return {
      secret,
      running: () => host.running(),
      sleepAll: () => host.sleepAll(),
      close,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
