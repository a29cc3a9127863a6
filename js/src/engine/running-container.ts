/** One incarnation of a container as the host holds it: its process, its sockets and what leaves it. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { logLine } from "../worker/log.ts";
import { agentPort, connectPort, PortAgent, PortError } from "./control.ts";
import type { ContainerEgress, EgressPlane } from "./egress-plane.ts";
import type { ContainerLimits, Launcher, Launchers } from "./launchers.ts";
import type { Intercept, Outcome, StartMessage } from "./protocol.ts";
import { Sandboxd } from "./sandboxd.ts";

export interface ContainerOptions {
  id: string;
  incarnation: string;
  message: StartMessage;
  limits: ContainerLimits;
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
  readonly #intercepts: Intercept[];
  #sandboxd: Sandboxd | null = null;
  #launcher: Launcher | null = null;
  #egress: Promise<ContainerEgress> | null = null;
  /** Settles when nothing is left of one that died before it could be started. */
  #dropped: Promise<void> = Promise.resolve();
  #over = false;
  #asked = false;

  constructor(options: ContainerOptions) {
    this.#options = options;
    this.id = options.id;
    this.incarnation = options.incarnation;
    this.className = options.message.className;
    this.#intercepts = [...options.message.intercepts];
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
    this.#intercepts.push(intercept);
    const egress = await this.#egress?.catch(() => null);
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
    if (process === null || this.#launcher === null || this.#over)
      throw new PortError("not_running", "the container is not running");
    await process.ready.catch((error: Error) => {
      throw new PortError("not_running", error.message);
    });
    try {
      return await connectPort(join(this.#launcher.runtimeDir, "control.sock"), port);
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
    this.#sandboxd?.kill();
    return this.ended;
  }

  async #launch(): Promise<Sandboxd> {
    const { id, limits, launchers, log } = this.#options;
    const launcher = launchers.take(limits);
    const sandboxd = await this.#startIn(launcher);
    if (!launcher.waited) return sandboxd;
    const fault = await sandboxd.ready.then(
      () => null,
      (error: Error) => error.message,
    );
    if (fault === null || this.#asked) return sandboxd;
    // It may have died of anything while nobody looked, and nothing of this life has run in it.
    log(logLine("warn", "a container that waited is replaced", { container: id, reason: fault }));
    this.#drop(sandboxd, launcher);
    return this.#startIn(launchers.launch(limits));
  }

  #drop(sandboxd: Sandboxd, launcher: Launcher): void {
    this.#egress?.then(
      (egress) => egress.close(),
      () => undefined,
    );
    this.#dropped = sandboxd.closed.then(() => this.#remove(launcher));
  }

  async #startIn(launcher: Launcher): Promise<Sandboxd> {
    const { id, message, egress, log } = this.#options;
    const { enableInternet } = message;
    const intercepts = this.#intercepts;
    this.#launcher = launcher;
    const sandboxd = new Sandboxd(launcher.process, id, log);
    this.#sandboxd = sandboxd;
    const socket = join(launcher.runtimeDir, "egress.sock");
    this.#egress = egress.listen(socket, { id, enableInternet, intercepts });
    try {
      const { certificatePem, listening } = await this.#egress;
      sandboxd.start({
        env: containerEnv(message),
        hostname: `sandbox-${id.slice(0, 12)}`,
        caCertificatePem: certificatePem,
        ports: extraPorts(intercepts),
      });
      await listening;
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
    this.#egress?.then(
      (egress) => egress.close(),
      () => undefined,
    );
    // In the background: a workspace of many files must not hold up what waits for the end.
    const closed = this.#process.then(
      (process) => process.closed,
      () => undefined,
    );
    this.removed = Promise.all([
      this.#dropped,
      closed.then(() => (this.#launcher === null ? undefined : this.#remove(this.#launcher))),
    ]).then(() => undefined);
    return outcome;
  }

  async #remove({ runtimeDir, upperDir }: Launcher): Promise<void> {
    const remove = (dir: string) => rm(dir, { recursive: true, force: true });
    await Promise.all([runtimeDir, upperDir].map(remove)).catch((error: Error) =>
      this.#options.log(`folders of ${this.id} remain: ${error.message}`),
    );
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
