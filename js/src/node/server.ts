/** `startServer`: the Worker in real workerd with the embedded engine beside it, on one folder. */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { HttpOptions_Style } from "miniflare";
import { loadCore } from "../core/index.ts";
import type { Core } from "../core/types.ts";
import type { EngineHost } from "../engine/host.ts";
import { logLine } from "../worker/log.ts";
import { mintToken } from "../worker/tokens.ts";
import { compatibilityDate, compatibilityFlags } from "./compatibility.ts";
import { startDocker } from "./docker-mode.ts";
import { startHost } from "./engine-host.ts";
import { type EngineMode, engineMode } from "./engine-mode.ts";
import { loadMiniflare } from "./load-miniflare.ts";
import { openStateDir, type StateDir } from "./state-dir.ts";
import { type MiniflareWorker, startWorkerd, type Workerd, type WorkerdEnd } from "./workerd.ts";

export interface ServerOptions {
  /** Everything that lasts is kept here. One server a folder. */
  stateDir: string;
  /** A free one without it, or with 0. */
  port?: number;
  /** Loopback without it. */
  host?: string;
  /** `name` or `name:port` to `address:port`, or `http://address:port` where TLS must not be spoken. */
  upstreams?: Record<string, string>;
  /** PEM certificates that are trusted on connections to upstreams. */
  upstreamCa?: string;
  /** Further variables of the Worker, such as OPENAI_API_KEY or SANDBOX_TRANSPORT. */
  vars?: Record<string, string>;
  /** In place of the folder's own SECRETS_KEYS: the first seals, all open. */
  secretKeys?: { id: string; key: string }[];
  /** `address:port` of an HTTP service that plays AI Gateway. */
  ai?: string;
  /** For SANDBOX_ENGINE=docker: what `npm run wrangler:config` wrote; `wrangler.jsonc` without it. */
  wranglerConfig?: string;
  /** In place of the built Worker: a folder with another `index.js` and its `core.wasm`. */
  workerDir?: string;
  /** Told what the runtime, the engine and the Worker log. */
  log?: (line: string) => void;
}

export interface MintTokenOptions {
  /** Seconds; a day without it. */
  expiresInSeconds?: number;
}

export interface Server {
  readonly url: string;
  /** May act for every project of this server. */
  readonly operatorToken: string;
  readonly engine: Engine;
  mintToken(projectId: string, options?: MintTokenOptions): Promise<string>;
  /** Puts every sandbox to sleep, then ends the runtime. With `sleep: false` containers end as in a crash: back to their last snapshots. */
  close(options?: { sleep?: boolean }): Promise<void>;
}

/** What a server says about its engine. */
export interface Engine {
  /** Durable Object ids of the containers that run. */
  running(): string[];
  readonly workerdPid: number | undefined;
}

/** Requests in absolute form. The package is not imported for the number alone. */
const proxyStyle: typeof HttpOptions_Style.PROXY = 1;
const monthSeconds = 30 * 24 * 60 * 60;
/** The same from the sources and from dist/js. */
const packageRoot = join(import.meta.dirname, "../../..");

export async function startServer(options: ServerOptions): Promise<Server> {
  const mode = engineMode(process.env);
  const state = await openStateDir(options.stateDir);
  try {
    if (mode === "docker") return await startDockerServer(options, state);
    return await RunningServer.start(options, mode, state);
  } catch (error) {
    await state.release();
    throw error;
  }
}

/** The same Worker and keys under `wrangler dev`, whose Docker support plays the containers. */
async function startDockerServer(options: ServerOptions, state: StateDir): Promise<Server> {
  const { tokenKeys } = state.keys;
  const operatorToken = await mintToken(tokenKeys, { operator: true, expiresInSeconds: monthSeconds });
  const worker = await startDocker(
    { config: options.wranglerConfig ?? "wrangler.jsonc", stateDir: state.path, ...listenOn(options) },
    workerVars(options, "docker", state),
    logOf(options),
  );
  return {
    url: worker.url.origin,
    operatorToken,
    engine: { running: () => [], workerdPid: undefined },
    mintToken: (projectId, mint = {}) => mintToken(tokenKeys, { projectId, ...mint }),
    async close() {
      await worker.close();
      await state.release();
    },
  };
}

class RunningServer implements Server {
  readonly operatorToken: string;
  readonly #state: StateDir;
  readonly #host: EngineHost | null;
  readonly #options: ServerOptions;
  readonly #worker: MiniflareWorker;
  #workerd: Workerd;
  #closing: Promise<void> | null = null;

  private constructor(parts: {
    options: ServerOptions;
    state: StateDir;
    host: EngineHost | null;
    worker: MiniflareWorker;
    workerd: Workerd;
    operatorToken: string;
  }) {
    this.#options = parts.options;
    this.#state = parts.state;
    this.#host = parts.host;
    this.#worker = parts.worker;
    this.#workerd = parts.workerd;
    this.operatorToken = parts.operatorToken;
    this.#adopt(parts.workerd);
  }

  static async start(options: ServerOptions, mode: EngineMode, state: StateDir): Promise<RunningServer> {
    // Before an engine is looked for, which may have to be built.
    await loadMiniflare();
    const core = await loadCore();
    const secret = randomBytes(32).toString("base64url");
    const host =
      mode === "embedded" ? await startHost({ ...options, state, core, secret, log: logOf(options) }) : null;
    let starting: Promise<Workerd> | undefined;
    try {
      const worker = workerOptions({ options, mode, state, core, host, secret });
      starting = startWorkerd(worker, listenOn(options), logOf(options));
      const [workerd] = await Promise.all([starting, host?.ready]);
      const operatorToken = await mintToken(state.keys.tokenKeys, {
        operator: true,
        expiresInSeconds: monthSeconds,
      });
      return new RunningServer({ options, state, host, worker, workerd, operatorToken });
    } catch (error) {
      await starting?.then(
        (workerd) => workerd.close(),
        () => undefined,
      );
      await host?.close();
      throw error;
    }
  }

  get url(): string {
    return this.#workerd.url.origin;
  }

  get engine(): Engine {
    return { running: () => this.#host?.running() ?? [], workerdPid: this.#workerd.pid };
  }

  mintToken(projectId: string, options: MintTokenOptions = {}): Promise<string> {
    return mintToken(this.#state.keys.tokenKeys, { projectId, ...options });
  }

  close({ sleep = true }: { sleep?: boolean } = {}): Promise<void> {
    this.#closing ??= this.#close(sleep);
    return this.#closing;
  }

  async #close(sleep: boolean): Promise<void> {
    if (sleep) await this.#host?.sleepAll();
    await this.#workerd.close();
    await this.#host?.close();
    await this.#state.release();
  }

  #adopt(workerd: Workerd): void {
    this.#workerd = workerd;
    this.#host?.connectWorker({ hostname: workerd.url.hostname, port: Number(workerd.url.port) });
    workerd.exited.then((end) => this.#onExit(workerd, end));
  }

  /** A runtime that dies takes its memory of the containers with it: they end, and a new one takes over the same address. */
  async #onExit(workerd: Workerd, end: WorkerdEnd): Promise<void> {
    if (this.#closing !== null) return;
    const log = logOf(this.#options);
    const containers = this.#host?.running().length ?? 0;
    log(
      logLine("error", "the Workers runtime ended by itself; it is started again, without its containers", {
        pid: workerd.pid,
        ...end,
        containers,
      }),
    );
    await this.#host?.killAll();
    await workerd.close().catch(() => undefined);
    if (this.#closing !== null) return;
    try {
      const listen = { host: workerd.url.hostname, port: Number(workerd.url.port) };
      const next = await startWorkerd(this.#worker, listen, log);
      if (this.#closing === null) this.#adopt(next);
      else await next.close();
    } catch (error) {
      log(logLine("error", "the Workers runtime does not start", { error }));
    }
  }
}

function listenOn(options: ServerOptions): { host: string; port: number } {
  return { host: options.host ?? "127.0.0.1", port: options.port ?? 0 };
}

function logOf(options: ServerOptions): (line: string) => void {
  return options.log ?? (() => undefined);
}

interface WorkerParts {
  options: ServerOptions;
  mode: EngineMode;
  state: StateDir;
  core: Core;
  host: EngineHost | null;
  secret: string;
}

function workerOptions({ options, mode, state, core, host, secret }: WorkerParts): MiniflareWorker {
  const classes: Record<string, string> = {
    STREAM: "StreamDurableObject",
    CATALOGUE: "CatalogueDurableObject",
    PROJECT: "ProjectDurableObject",
    SECRET: "SecretDurableObject",
    ...Object.fromEntries(core.instanceTypes().map(({ binding, className }) => [binding, className])),
  };
  const workerDir = options.workerDir ?? join(packageRoot, "dist/worker");
  return {
    modules: [
      { type: "ESModule", path: built(join(workerDir, "index.js")) },
      { type: "CompiledWasm", path: built(join(workerDir, "core.wasm")) },
    ],
    modulesRoot: workerDir,
    compatibilityDate,
    compatibilityFlags,
    durableObjects: Object.fromEntries(
      Object.entries(classes).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    durableObjectsPersist: join(state.path, "durable-objects"),
    r2Buckets: { BACKUP_BUCKET: "backups" },
    r2Persist: join(state.path, "r2"),
    bindings: { ...workerVars(options, mode, state), ...(host === null ? {} : { ENGINE_SECRET: secret }) },
    serviceBindings: {
      ...(host === null ? {} : { ENGINE: { external: { address: `unix:${host.engineSocket}`, http: {} } } }),
      ...(options.ai === undefined ? {} : { AI_GATEWAY: { external: { address: options.ai, http: {} } } }),
    },
    ...(host === null
      ? {}
      : {
          outboundService: {
            external: { address: `unix:${host.outboundSocket}`, http: { style: proxyStyle } },
          },
        }),
  };
}

function workerVars(options: ServerOptions, mode: EngineMode, state: StateDir): Record<string, string> {
  return {
    SANDBOX_TRANSPORT: "rpc",
    ...options.vars,
    ENGINE_MODE: mode,
    TOKEN_KEYS: JSON.stringify(state.keys.tokenKeys),
    SECRETS_KEYS: JSON.stringify(options.secretKeys ?? state.keys.secretsKeys),
  };
}

function built(path: string): string {
  if (!existsSync(path)) throw new Error(`${path} is missing; build it with \`npm run setup\``);
  return path;
}
