/**
 * `ctx.container` over the embedded engine: what `@cloudflare/containers` and `@cloudflare/sandbox` touch of it, with the
 * runtime's own semantics and error texts, which the libraries match on.
 */
import { recipeOf, recordingExports } from "./exports.ts";
import {
  beginLife,
  currentLife,
  endLife,
  type Life,
  recordIntercept,
  registeredIntercepts,
} from "./lives.ts";
import {
  type EngineErrorCode,
  type EngineOperation,
  engineHeader,
  type InterceptKind,
  type Outcome,
  type StartMessage,
} from "./protocol.ts";

/** The bindings of the engine; all are absent on Cloudflare. */
export interface EngineEnv {
  ENGINE?: Fetcher;
  ENGINE_SECRET?: string;
  ENGINE_MODE?: string;
}

export interface ContainerClass {
  /** The Durable Object's class. */
  className: string;
  instanceType: string;
}

/** The agent's port, which listens as long as the container runs. */
const agentPort = 3000;
/** Where the library asks a port whether it listens. Any answer will do. */
const probe = "http://ping/";
/** The base class schedules alarms as it reads the exit; this gives it the time to note it first. */
const exitNoticeMs = 5;
/** The host has told the end on another connection by then. */
const endNoticeMs = 2_000;

/**
 * Defines `ctx.container` for the embedded engine. Called in a constructor before `super()`, since the libraries read it there.
 * Does nothing where the platform has containers of its own.
 * @throws Error "Container is not enabled" where `SANDBOX_ENGINE=none`.
 */
export function installContainer(
  ctx: DurableObjectState,
  env: EngineEnv,
  containerClass: ContainerClass,
): void {
  if (env.ENGINE === undefined) {
    if (env.ENGINE_MODE === "none") {
      throw new Error(
        "Container is not enabled: SANDBOX_ENGINE is none; set SANDBOX_ENGINE=embedded (Linux) or SANDBOX_ENGINE=docker and start again",
      );
    }
    return;
  }
  Object.defineProperty(ctx, "exports", { value: recordingExports(ctx.exports), configurable: true });
  const container = new EngineContainer(ctx, env.ENGINE, containerClass);
  Object.defineProperty(ctx, "container", { value: container, configurable: true });
}

interface StartOptions {
  enableInternet?: boolean;
  env?: Record<string, string>;
  entrypoint?: string[];
  labels?: Record<string, string>;
}

class EngineContainer {
  readonly #storage: DurableObjectStorage;
  readonly #id: string;
  readonly #engine: Fetcher;
  readonly #class: ContainerClass;
  /** The watch on one incarnation, and which; one request to the host serves every `monitor` call. */
  #watch: { life: Life; ended: Promise<Outcome> } | null = null;
  /** In which the agent has answered. */
  #answered: Life | null = null;

  constructor(ctx: DurableObjectState, engine: Fetcher, containerClass: ContainerClass) {
    this.#storage = ctx.storage;
    this.#id = ctx.id.toString();
    this.#engine = engine;
    this.#class = containerClass;
  }

  get running(): boolean {
    return currentLife(this.#id)?.outcome === null;
  }

  start(options: StartOptions = {}): void {
    if (this.running) throw new Error("start() cannot be called on a container that is already running.");
    const life = beginLife(this.#id, crypto.randomUUID());
    const message: StartMessage = {
      ...this.#class,
      enableInternet: options.enableInternet ?? false,
      env: options.env ?? {},
      entrypoint: options.entrypoint ?? [],
      labels: options.labels ?? {},
      intercepts: registeredIntercepts(this.#id),
    };
    this.#watchLife(life, "start", message);
  }

  async monitor(): Promise<void> {
    const life = currentLife(this.#id);
    if (life === null) throw new Error("monitor() cannot be called on a container that is not running.");
    settle(life, life.outcome ?? (await this.#watchOf(life).ended));
  }

  async destroy(reason?: unknown): Promise<void> {
    const life = currentLife(this.#id);
    if (life === null || life.outcome !== null) return;
    if (reason !== undefined) life.destroyReason ??= { value: reason };
    const watch = this.#watchOf(life);
    const response = await this.#send("destroy", life, {});
    await response.body?.cancel();
    await watch.ended;
  }

  signal(signal: number): void {
    if (!Number.isInteger(signal) || signal < 1 || signal > 64) {
      throw new RangeError(`Invalid signal number: ${signal}; signals are 1 to 64`);
    }
    const life = currentLife(this.#id);
    if (life === null || life.outcome !== null) {
      throw new Error("signal() cannot be called on a container that is not running.");
    }
    // A container that ended meanwhile cannot be signalled, and its end is reported by monitor().
    this.#send("signal", life, { signal }).then(
      (response) => response.body?.cancel(),
      () => undefined,
    );
  }

  getTcpPort(port: number): { fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> } {
    if (!Number.isInteger(port) || port < 1 || port > 65535) {
      throw new RangeError(`Invalid port number: ${port}; ports are 1 to 65535`);
    }
    return { fetch: (input, init) => this.#fetchPort(port, new Request(input, init)) };
  }

  interceptOutboundHttp(address: string, fetcher: Fetcher): Promise<void> {
    return this.#intercept("http", address, fetcher);
  }

  interceptOutboundHttps(address: string, fetcher: Fetcher): Promise<void> {
    return this.#intercept("https", address, fetcher);
  }

  interceptAllOutboundHttp(fetcher: Fetcher): Promise<void> {
    return this.#intercept("all", "*", fetcher);
  }

  async #intercept(kind: InterceptKind, address: string, fetcher: Fetcher): Promise<void> {
    const target = recipeOf(fetcher);
    if (target === null) {
      throw new TypeError(
        `the interceptor for ${address} is not a stub of ctx.exports; pass ctx.exports.<Entrypoint>({ props })`,
      );
    }
    recordIntercept(this.#id, { kind, address }, target);
    const life = currentLife(this.#id);
    if (life === null || life.outcome !== null) return;
    const response = await this.#send("intercept", life, { kind, address });
    await response.body?.cancel();
  }

  async #fetchPort(port: number, request: Request): Promise<Response> {
    const life = currentLife(this.#id);
    if (life === null || life.outcome !== null) throw portError("not_running", port);
    // The library has just asked the same by another name: what it will hear is known.
    const asks = port === agentPort && request.method === "GET" && request.url === probe;
    if (asks && this.#answered === life) return new Response();
    const headers = new Headers(request.headers);
    this.#address(headers, "port", life);
    headers.set(engineHeader.port, String(port));
    const url = request.url.replace(/^https:/, "http:");
    const response = await this.#engine.fetch(url, {
      method: request.method,
      headers,
      body: request.body,
      redirect: "manual",
      signal: request.signal,
    });
    const error = response.headers.get(engineHeader.error);
    if (error === null) {
      if (port === agentPort) this.#answered = life;
      return response;
    }
    await response.body?.cancel();
    // The library starts a container that it knows to be over; one that seems to run it gives up.
    if (error === "not_running") await Promise.race([this.#watchOf(life).ended, after(endNoticeMs)]);
    throw portError(error, port);
  }

  #watchOf(life: Life): { ended: Promise<Outcome> } {
    return this.#watch?.life === life ? this.#watch : this.#watchLife(life, "monitor", {});
  }

  #watchLife(life: Life, operation: "start" | "monitor", message: object): { ended: Promise<Outcome> } {
    const watch = { life, ended: this.#awaitEnd(life, operation, message) };
    this.#watch = watch;
    return watch;
  }

  /** One long request: the host answers when the incarnation has ended. */
  async #awaitEnd(life: Life, operation: "start" | "monitor", message: object): Promise<Outcome> {
    const outcome = await this.#send(operation, life, message).then(readOutcome, lostHost);
    endLife(this.#id, life.incarnation, outcome);
    // Delivers onStop at once: without it the next call over the rpc transport runs into the old incarnation.
    setTimeout(() => this.#storage.setAlarm(Date.now()), exitNoticeMs);
    return life.outcome ?? outcome;
  }

  #send(operation: EngineOperation, life: Life, message: object): Promise<Response> {
    const headers = new Headers({ "content-type": "application/json" });
    this.#address(headers, operation, life);
    return this.#engine.fetch("http://engine/", { method: "POST", headers, body: JSON.stringify(message) });
  }

  #address(headers: Headers, operation: EngineOperation, life: Life): void {
    headers.set(engineHeader.operation, operation);
    headers.set(engineHeader.container, this.#id);
    headers.set(engineHeader.incarnation, life.incarnation);
  }
}

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function readOutcome(response: Response): Promise<Outcome> {
  const value: unknown = await response.json();
  return isOutcome(value) ? value : { kind: "failed", message: `the engine answered ${response.status}` };
}

/** The host went away with its containers, or the object was torn down under the request. */
function lostHost(error: unknown): Outcome {
  return {
    kind: "failed",
    message: `Network connection lost. (${error instanceof Error ? error.message : String(error)})`,
  };
}

function isOutcome(value: unknown): value is Outcome {
  if (typeof value !== "object" || value === null || !("kind" in value)) return false;
  return value.kind === "exited" ? "exitCode" in value : value.kind === "failed" && "message" in value;
}

/** Returns for exit code 0; throws what the runtime's `monitor()` rejects with otherwise. */
function settle(life: Life, outcome: Outcome): void {
  if (life.destroyReason !== null) throw life.destroyReason.value;
  if (outcome.kind === "failed") throw new Error(outcome.message);
  if (outcome.exitCode === 0) return;
  // The library reads the code as everything after the colon, so nothing may follow it.
  const error = new Error(`Container exited with unexpected exit code: ${outcome.exitCode}`);
  throw Object.assign(error, { exitCode: outcome.exitCode, reason: outcome.reason });
}

/** The runtime's own texts: the libraries recognise them in lower case. */
function portError(code: string, port: number): Error {
  const texts: Record<EngineErrorCode, string> = {
    not_listening: `The container is not listening in the TCP address 10.0.0.1:${port}`,
    not_running: "The container is not running, consider calling start()",
    connection_lost: "Network connection lost.",
    refused: "The engine refused the request",
  };
  return new Error(
    Object.entries(texts).find(([known]) => known === code)?.[1] ?? `The engine answered ${code}`,
  );
}
