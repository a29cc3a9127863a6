/** One incarnation of a container as the host holds it: its process, its sockets and what leaves it. */
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { agentPort, connectPort, PortAgent, PortError } from "./control.ts";
import type { ContainerEgress, EgressPlane } from "./egress-plane.ts";
import type { Launchers } from "./launchers.ts";
import type { Intercept, Outcome, StartMessage } from "./protocol.ts";
import { type ContainerLimits, Sandboxd } from "./sandboxd.ts";

export interface ContainerOptions {
  id: string;
  incarnation: string;
  message: StartMessage;
  limits: ContainerLimits;
  /** Of this incarnation alone; both are removed at its end. */
  runtimeDir: string;
  upperDir: string;
  launchers: Launchers;
  egress: EgressPlane;
  log: (line: string) => void;
}

/** Connections to the agent stay open between calls; a user's server gets one for each request. */
const agentIdleMs = 30_000;
/** How long a lost connection may be the sign of an end. */
const endNoticeMs = 2_000;

export class RunningContainer {
  readonly id: string;
  readonly incarnation: string;
  readonly className: string;
  /** Settles when it is gone. Never rejects. */
  readonly ended: Promise<Outcome>;
  /** Files that the Worker has placed, by the name it gave each, until the SDK's own upload of them comes. */
  readonly placed = new Map<string, string>();
  /** Settles when its folders are gone too. */
  removed: Promise<void> = Promise.resolve();
  readonly #options: ContainerOptions;
  readonly #agents = new Map<number, PortAgent>();
  readonly #process: Promise<Sandboxd>;
  readonly #egress: Promise<ContainerEgress>;
  #over = false;
  #asked = false;

  constructor(options: ContainerOptions) {
    this.#options = options;
    this.id = options.id;
    this.incarnation = options.incarnation;
    this.className = options.message.className;
    this.#egress = this.#listen();
    this.#process = this.#launch();
    this.ended = this.#live();
  }

  get over(): boolean {
    return this.#over;
  }

  /** Whether somebody has asked for its end. */
  get asked(): boolean {
    return this.#asked;
  }

  async intercept(intercept: Intercept): Promise<void> {
    const egress = await this.#egress.catch(() => null);
    if (!this.#over) await egress?.intercept(intercept);
  }

  /** The HTTP agent for a port inside. Its connections wait until pid 1 is up. */
  agent(port: number): PortAgent {
    const known = this.#agents.get(port);
    if (known !== undefined) return known;
    const keep = port === agentPort;
    const agent = new PortAgent(() => this.connect(port), {
      keepAlive: keep,
      timeout: keep ? agentIdleMs : 0,
    });
    if (keep) this.#agents.set(port, agent);
    return agent;
  }

  async connect(port: number) {
    const process = await this.#process.catch(() => null);
    if (process === null || this.#over) throw new PortError("not_running", "the container is not running");
    await process.ready.catch((error: Error) => {
      throw new PortError("not_running", error.message);
    });
    try {
      return await connectPort(join(this.#options.runtimeDir, "control.sock"), port);
    } catch (error) {
      const lost = error instanceof PortError && error.code === "connection_lost";
      if (this.#over || (lost && (await this.ends()))) {
        throw new PortError("not_running", "the container ended");
      }
      throw error;
    }
  }

  /**
   * Whether it is over, or is in a moment: a connection that breaks off is often the first that is heard of an end, which the kernel
   * takes its time for.
   */
  async ends(): Promise<boolean> {
    if (this.#over) return true;
    let timer: NodeJS.Timeout | undefined;
    const noEnd = new Promise<boolean>((resolve) => {
      timer = setTimeout(() => resolve(false), endNoticeMs);
    });
    return Promise.race([this.ended.then(() => true), noEnd]).finally(() => clearTimeout(timer));
  }

  async signal(signal: number): Promise<void> {
    this.#asked = true;
    const process = await this.#process;
    await process.ready;
    process.signal(signal);
  }

  /** Ends it at once and returns when it is gone. */
  async kill(): Promise<Outcome> {
    this.#asked = true;
    this.#process.then(
      (process) => process.kill(),
      () => undefined,
    );
    return this.ended;
  }

  async #listen(): Promise<ContainerEgress> {
    const { id, message, runtimeDir, egress } = this.#options;
    await mkdir(runtimeDir, { recursive: true, mode: 0o700 });
    const { enableInternet, intercepts } = message;
    return egress.listen(join(runtimeDir, "egress.sock"), { id, enableInternet, intercepts });
  }

  async #launch(): Promise<Sandboxd> {
    const { id, message, runtimeDir, upperDir, limits, launchers, log } = this.#options;
    const sandboxd = new Sandboxd(launchers.take(), id, log);
    try {
      const [{ certificatePem }] = await Promise.all([
        this.#egress,
        mkdir(upperDir, { recursive: true, mode: 0o700 }),
      ]);
      sandboxd.launch({
        id: id.slice(0, 64),
        runtimeDir,
        upperDir,
        env: containerEnv(message),
        hostname: `sandbox-${id.slice(0, 12)}`,
        limits,
        caCertificatePem: certificatePem,
        interceptHttps: message.intercepts.some(({ kind }) => kind === "https"),
        ports: extraPorts(message.intercepts),
      });
      return sandboxd;
    } catch (error) {
      sandboxd.kill();
      throw error;
    }
  }

  async #live(): Promise<Outcome> {
    const outcome = await this.#process.then(
      (process) => process.ended,
      (error: Error): Outcome => ({ kind: "failed", message: error.message }),
    );
    this.#over = true;
    for (const agent of this.#agents.values()) agent.destroy();
    this.#egress.then(
      (egress) => egress.close(),
      () => undefined,
    );
    // In the background: a workspace of many files must not hold up what waits for the end.
    const closed = this.#process.then(
      (process) => process.closed,
      () => undefined,
    );
    const { runtimeDir, upperDir } = this.#options;
    const remove = () =>
      Promise.all([runtimeDir, upperDir].map((dir) => rm(dir, { recursive: true, force: true })));
    this.removed = closed.then(remove).then(
      () => undefined,
      (error: Error) => this.#options.log(`folders of ${this.id} remain: ${error.message}`),
    );
    return outcome;
  }
}

function containerEnv(message: StartMessage): Record<string, string> {
  const https = message.intercepts.some(({ kind }) => kind === "https");
  return { ...message.env, ...(https ? { SANDBOX_INTERCEPT_HTTPS: "1" } : {}) };
}

/** Addresses registered with a port of their own: connections to it go to the relay like those to 80 and 443. */
function extraPorts(intercepts: readonly Intercept[]): string[] {
  return intercepts
    .map(({ address }) => address)
    .filter((address) => /^(\[[^\]]+\]|[^:]+):\d+$/.test(address));
}
