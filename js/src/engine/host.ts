/**
 * The host of the embedded engine: keeps the registry of containers, runs `sandboxd` for each, and serves the Worker side of
 * `ctx.container` on a Unix socket in a folder that only this user can enter.
 */
import { rm } from "node:fs/promises";
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { json } from "node:stream/consumers";
import { logLine } from "../worker/log.ts";
import { agentPort } from "./control.ts";
import { maxHeaderBytes } from "./egress.ts";
import { EgressPlane } from "./egress-plane.ts";
import { freshDir } from "./fresh-dir.ts";
import { type ContainerLimits, Launchers } from "./launchers.ts";
import type { OutboundOptions } from "./outbound.ts";
import { fetchPort, refusePort, refuseUpgrade, upgradePort } from "./ports.ts";
import {
  type EngineOperation,
  endReason,
  engineHeader,
  enginePath,
  type Intercept,
  type Outcome,
  operations,
  type StartMessage,
  sleepStatus,
} from "./protocol.ts";
import { ControlSessions, rpcPath } from "./rpc/session.ts";
import { RunningContainer } from "./running-container.ts";
import { postAbout, type WorkerAddress } from "./worker-calls.ts";

export interface HostOptions {
  /** The `sandboxd` binary. */
  sandboxd: string;
  /** For sockets: short, since a socket's path holds 108 bytes, and this engine's alone. */
  runtimeDir: string;
  /** On disk, for what containers write: this engine's alone. */
  scratchDir: string;
  /** Shared with the Worker; a new one for each boot. */
  secret: string;
  limits: (instanceType: string) => ContainerLimits;
  outbound: Omit<OutboundOptions, "secret" | "classify">;
  log: (line: string) => void;
}

/** Of the container that is prepared before any is asked for. */
const usualInstanceType = "basic";
/** A call may overtake the start of its container on another connection; this bounds its wait. */
const overtakeMs = 10_000;
const maxRemembered = 4096;
/** Shorter than the 5 s after which workerd closes an idle connection, so that none is used as it closes. */
const workerIdleMs = 4_000;
/** Snapshots keep a processor busy. */
const sleepersAtOnce = 4;
/** The news of an end and the end of its sessions are on their way on connections of their own. */
const endHeardMs = 10;

interface Call {
  operation: EngineOperation;
  container: string;
  incarnation: string;
  port: number;
}

export class EngineHost {
  readonly #options: HostOptions;
  readonly #containers = new Map<string, RunningContainer>();
  readonly #starts = new Map<string, Set<() => void>>();
  /** Incarnations that are over, the latest ones: a call for one of them has nothing to wait for. */
  readonly #over = new Set<string>();
  readonly #watchers = new Map<RunningContainer, Set<ServerResponse>>();
  readonly #workerAgent = new Agent({ keepAlive: true, timeout: workerIdleMs });
  readonly #launchers: Launchers;
  readonly #server: Server;
  readonly #sessions: ControlSessions;
  readonly #egress: EgressPlane;
  #worker: WorkerAddress | null = null;
  #closing = false;

  private constructor(options: HostOptions) {
    this.#options = options;
    this.#launchers = new Launchers({
      binary: options.sandboxd,
      runtimeDir: options.runtimeDir,
      scratchDir: options.scratchDir,
      limits: options.limits(usualInstanceType),
      log: options.log,
    });
    this.#sessions = new ControlSessions(options.log);
    this.#egress = new EgressPlane({
      outbound: { ...options.outbound, secret: options.secret },
      outboundSocket: this.outboundSocket,
    });
    this.#server = createServer({
      maxHeaderSize: maxHeaderBytes,
      requestTimeout: 0,
      keepAliveTimeout: 60_000,
    });
    this.#server.on("request", (incoming, response) => {
      this.#onRequest(incoming, response).catch((error: Error) => {
        if (!response.headersSent) refusePort(response, "refused", error.message);
      });
    });
    this.#server.on("upgrade", (incoming, socket, head) => {
      this.#onUpgrade(incoming, socket, head).catch((error: Error) =>
        refuseUpgrade(incoming, socket, "refused", error.message),
      );
    });
  }

  /** Clears what an engine that was killed left behind, and listens. */
  static async start(options: HostOptions): Promise<EngineHost> {
    await Promise.all([options.runtimeDir, options.scratchDir].map((dir) => freshDir(dir, options.log)));
    const host = new EngineHost(options);
    await new Promise<void>((resolve, reject) => {
      host.#server.once("error", reject);
      host.#server.listen(host.engineSocket, resolve);
    });
    host.#launchers.prepare();
    return host;
  }

  /** Where the Worker's ENGINE binding leads. */
  get engineSocket(): string {
    return join(this.#options.runtimeDir, "engine.sock");
  }

  /** Where the Worker's outgoing requests go. */
  get outboundSocket(): string {
    return join(this.#options.runtimeDir, "outbound.sock");
  }

  /** Settles when the Worker's requests can leave. The Worker may start meanwhile. */
  get ready(): Promise<void> {
    return this.#egress.ready;
  }

  connectWorker(worker: WorkerAddress): void {
    this.#worker = worker;
    this.#egress.connectWorker(worker);
  }

  /** The ids of the containers that run. */
  running(): string[] {
    return [...this.#containers.keys()];
  }

  /** Asks the Worker to put every sandbox to sleep, so that a host that ends in peace loses nothing that stood in a workspace. */
  async sleepAll(): Promise<void> {
    const waiting = [...this.#containers.values()];
    const next = async (): Promise<void> => {
      for (let container = waiting.pop(); container !== undefined; container = waiting.pop()) {
        const { id, className } = container;
        const post = postAbout(this.#workerAddress(), enginePath.sleep, container, { className });
        const status = await post.catch((error: Error) => error.message);
        const { done, unsupported } = sleepStatus;
        if (status === done) continue;
        const reason = status === unsupported ? "its class takes none" : `the Worker answered ${status}`;
        this.#options.log(`${className} ${id} ends without a snapshot: ${reason}`);
      }
    };
    await Promise.all(Array.from({ length: sleepersAtOnce }, next));
  }

  /** Ends every container and returns when they are gone. */
  async killAll(): Promise<void> {
    const containers = [...this.#containers.values()];
    await Promise.all(containers.map((container) => container.kill()));
    await Promise.all(containers.map((container) => container.removed));
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.killAll();
    this.#sessions.close();
    this.#server.close();
    this.#server.closeAllConnections();
    this.#workerAgent.destroy();
    await Promise.all([this.#egress.close(), this.#launchers.close()]);
    await rm(this.#options.runtimeDir, { recursive: true, force: true });
  }

  async #onRequest(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = readCall(incoming);
    if (call === null) {
      refusePort(response, "refused", "not a call of the engine");
      return;
    }
    if (call.operation === "start") {
      this.#start(call, startMessage(await json(incoming)), response);
      return;
    }
    const container = await this.#find(call);
    if (container === null) {
      this.#answerGone(call, response);
      return;
    }
    if (call.operation === "port") {
      fetchPort(container, call.port, incoming, response);
      return;
    }
    await this.#control(container, call.operation, await json(incoming), response);
  }

  async #onUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const call = readCall(incoming);
    if (call?.operation !== "port") {
      refuseUpgrade(incoming, socket, "refused", "not a call of the engine");
      return;
    }
    const container = await this.#find(call);
    if (container === null) {
      refuseUpgrade(incoming, socket, "not_running", "the container is not running");
    } else if (call.port === agentPort && incoming.url?.split("?")[0] === rpcPath) {
      await this.#sessions.accept(container, incoming, socket, head);
    } else {
      upgradePort(container, call.port, incoming, socket, head);
    }
  }

  #start(call: Call, message: StartMessage, response: ServerResponse): void {
    const { container: id, incarnation } = call;
    const before = this.#containers.get(id);
    if (this.#closing) {
      answerOutcome(response, { kind: "failed", message: "the engine is closing" });
      return;
    }
    if (before !== undefined && !before.over) {
      // Only a Worker that lost its memory starts twice: the older incarnation is nobody's any more.
      this.#containers.delete(id);
      before.kill().then(() => this.#start(call, message, response));
      return;
    }
    const container = new RunningContainer({
      id,
      incarnation,
      message,
      limits: this.#options.limits(message.instanceType),
      launchers: this.#launchers,
      egress: this.#egress,
      log: this.#options.log,
    });
    this.#containers.set(id, container);
    this.#watch(container, response);
    for (const wake of this.#starts.get(incarnation) ?? []) wake();
    container.ended.then((outcome) => this.#onEnded(container, outcome));
  }

  #onEnded(container: RunningContainer, outcome: Outcome): void {
    if (this.#containers.get(container.id) === container) this.#containers.delete(container.id);
    const [oldest] = this.#over;
    if (this.#over.size >= maxRemembered && oldest !== undefined) this.#over.delete(oldest);
    this.#over.add(container.incarnation);
    if (!container.asked) this.#logDeath(container, outcome);
    const watchers = this.#watchers.get(container) ?? new Set();
    this.#watchers.delete(container);
    for (const response of watchers) answerOutcome(response, outcome);
    if (watchers.size === 0 && !this.#closing) this.#report(container, outcome);
    this.#prepare();
    // Whose call breaks off has heard of the end then, and starts a new life with the next.
    setTimeout(() => this.#sessions.end(container), endHeardMs);
  }

  #prepare(): void {
    if (this.#closing) return;
    this.#launchers.prepare();
    this.#egress.prepare();
  }

  #logDeath({ id, className }: RunningContainer, outcome: Outcome): void {
    const fields = { container: id, className, reason: endReason(outcome) };
    this.#options.log(logLine("error", "a container ended by itself", fields));
  }

  /** Answers when the container has ended; an object that goes away meanwhile is no watcher any more. */
  #watch(container: RunningContainer, response: ServerResponse): void {
    const watchers = this.#watchers.get(container) ?? new Set();
    this.#watchers.set(container, watchers.add(response));
    response.on("close", () => watchers.delete(response));
  }

  async #control(
    container: RunningContainer,
    operation: Exclude<EngineOperation, "start" | "port">,
    message: unknown,
    response: ServerResponse,
  ): Promise<void> {
    if (operation === "monitor") {
      if (container.over) answerOutcome(response, await container.ended);
      else this.#watch(container, response);
      return;
    }
    if (operation === "destroy") {
      const ended = container.kill();
      // Another may come in its place, and would find the machine busy with it.
      this.#prepare();
      await ended;
    }
    if (operation === "signal") await container.signal(signalField(message));
    if (operation === "intercept") await container.intercept(interceptField(message));
    response.writeHead(204).end();
  }

  #answerGone(call: Call, response: ServerResponse): void {
    if (call.operation === "port") refusePort(response, "not_running", "the container is not running");
    else if (call.operation === "monitor") {
      answerOutcome(response, { kind: "failed", message: "the container is not running" });
    } else response.writeHead(204).end();
  }

  async #find(call: Call): Promise<RunningContainer | null> {
    const known = this.#containers.get(call.container);
    if (known?.incarnation === call.incarnation) return known;
    if (this.#over.has(call.incarnation)) return null;
    await this.#awaitStart(call.incarnation);
    const started = this.#containers.get(call.container);
    return started?.incarnation === call.incarnation ? started : null;
  }

  #awaitStart(incarnation: string): Promise<void> {
    const waiting = this.#starts.get(incarnation) ?? new Set<() => void>();
    this.#starts.set(incarnation, waiting);
    return new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, overtakeMs);
      waiting.add(() => {
        clearTimeout(timer);
        resolve();
      });
    }).finally(() => this.#starts.delete(incarnation));
  }

  #workerAddress() {
    if (this.#worker === null) throw new Error("the Worker is not running");
    return { ...this.#worker, secret: this.#options.secret, agent: this.#workerAgent };
  }

  /** Tells the Worker about an end that no object was there to hear. */
  #report(container: RunningContainer, outcome: Outcome): void {
    if (this.#worker === null) return;
    postAbout(this.#workerAddress(), enginePath.exited, container, outcome).catch((error: Error) =>
      this.#options.log(`the end of ${container.id} was not reported: ${error.message}`),
    );
  }
}

function readCall(incoming: IncomingMessage): Call | null {
  const operation = operations.find((known) => known === incoming.headers[engineHeader.operation]);
  const container = incoming.headers[engineHeader.container];
  const incarnation = incoming.headers[engineHeader.incarnation];
  if (operation === undefined || typeof container !== "string" || typeof incarnation !== "string")
    return null;
  // Both become names of folders.
  if (!/^[0-9a-f]{1,128}$/.test(container) || !/^[0-9a-f-]{36}$/.test(incarnation)) return null;
  return { operation, container, incarnation, port: Number(incoming.headers[engineHeader.port] ?? 0) };
}

function answerOutcome(response: ServerResponse, outcome: Outcome): void {
  if (response.destroyed) return;
  response.writeHead(200, { "content-type": "application/json" });
  response.end(JSON.stringify(outcome));
}

function startMessage(value: unknown): StartMessage {
  if (typeof value !== "object" || value === null || !("instanceType" in value) || !("intercepts" in value)) {
    throw new TypeError("not a start message");
  }
  return value as StartMessage;
}

function signalField(message: unknown): number {
  if (typeof message !== "object" || message === null || !("signal" in message))
    throw new TypeError("not a signal");
  if (typeof message.signal !== "number") throw new TypeError("signal must be a number");
  return message.signal;
}

function interceptField(message: unknown): Intercept {
  if (typeof message !== "object" || message === null || !("kind" in message) || !("address" in message)) {
    throw new TypeError("not an interceptor");
  }
  const { kind, address } = message;
  if ((kind !== "http" && kind !== "https" && kind !== "all") || typeof address !== "string") {
    throw new TypeError("not an interceptor");
  }
  return { kind, address };
}
