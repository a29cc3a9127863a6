/** The processes that become containers. */
import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { LauncherProcess } from "./launcher-process.ts";
import { Spawner } from "./spawner.ts";

/** The processes and disk that a container may take. */
export interface ContainerLimits {
  memoryBytes: number;
  /** Relative, 1 to 10000 as in cgroup v2. */
  cpuWeight: number;
  /** Of one CPU: 0.25 is a quarter. */
  cpuQuota: number;
  pids: number;
  diskBytes: number;
}

/** The first line that `sandboxd launch` reads from its standard input. */
interface LaunchConfig {
  id: string;
  /** Exists; holds the container's sockets. */
  runtimeDir: string;
  /** On disk: the overlays' upper and work directories, workspace and temporary files. */
  upperDir: string;
  limits: ContainerLimits;
}

/** The parent of a container that nobody has yet. Who takes it removes its folders at its end. */
export interface Launcher {
  readonly process: LauncherProcess;
  readonly limits: ContainerLimits;
  readonly runtimeDir: string;
  readonly upperDir: string;
  /** It stood ready for somebody, and has not been looked at since. */
  readonly waited: boolean;
}

export interface LaunchersOptions {
  /** The `sandboxd` binary. */
  binary: string;
  runtimeDir: string;
  scratchDir: string;
  /** Those of the containers that are prepared until one is taken. */
  limits: ContainerLimits;
  log: (line: string) => void;
}

/** How long after a start nobody is expected to wait for the next one. */
const quietMs = 1_000;
/** How long an unwanted container may take to end. */
const dismissMs = 5_000;

/**
 * Keeps one container prepared with the limits of the last one, up to where it has to be known whose it is: namespaces, mounts and control
 * groups take most of a start's time.
 */
export class Launchers {
  readonly #options: LaunchersOptions;
  readonly #spawner: Spawner;
  readonly #dismissed = new Set<Promise<void>>();
  #limits: ContainerLimits;
  #spare: Launcher | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: LaunchersOptions) {
    this.#options = options;
    this.#limits = options.limits;
    const { binary, runtimeDir, log } = options;
    this.#spawner = new Spawner({ binary, socket: join(runtimeDir, "spawner.sock"), log });
  }

  /** A launcher whose container, prepared or still in the making, waits for the second line on its standard input. */
  take(limits: ContainerLimits): Launcher {
    this.#limits = limits;
    this.#timer ??= setTimeout(() => this.prepare(), quietMs).unref();
    const spare = this.#spare;
    if (spare === null || !sameLimits(spare.limits, limits)) return this.launch(limits);
    this.#spare = null;
    return { ...spare, waited: true };
  }

  /** Has one ready, at a moment when nobody waits. */
  prepare(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#closed) return;
    const before = this.#spare;
    if (before !== null && sameLimits(before.limits, this.#limits)) return;
    this.#spare = null;
    if (before !== null) this.#dismiss(before);
    try {
      const spare = this.launch(this.#limits);
      this.#spare = spare;
      spare.process.exited.then(() => {
        if (this.#spare !== spare) return;
        this.#spare = null;
        this.#dismiss(spare);
      });
    } catch {
      // The next start meets the same fault, and tells it.
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const spare = this.#spare;
    this.#spare = null;
    if (spare !== null) this.#dismiss(spare);
    // A launcher's end is heard of from the spawner, whose patience has an end.
    await Promise.all([...this.#dismissed, this.#spawner.close()]);
  }

  /** Without a second line it tidies up after itself. */
  #dismiss(launcher: Launcher): void {
    const { process } = launcher;
    process.endInput();
    const timer = setTimeout(() => process.kill("SIGKILL"), dismissMs).unref();
    const dismissed = process.closed.then(() => {
      clearTimeout(timer);
      return this.#remove(launcher);
    });
    this.#dismissed.add(dismissed);
    dismissed.finally(() => this.#dismissed.delete(dismissed));
  }

  async #remove({ runtimeDir, upperDir }: Launcher): Promise<void> {
    const remove = (dir: string) => rm(dir, { recursive: true, force: true });
    await Promise.all([runtimeDir, upperDir].map(remove)).catch((error: Error) =>
      this.#options.log(`folders of a container that nobody took remain: ${error.message}`),
    );
  }

  /** A new one. */
  launch(limits: ContainerLimits): Launcher {
    const { runtimeDir, scratchDir } = this.#options;
    const id = randomUUID();
    const config: LaunchConfig = {
      id,
      runtimeDir: join(runtimeDir, id),
      upperDir: join(scratchDir, id),
      limits,
    };
    const { runtimeDir: run, upperDir } = config;
    try {
      for (const dir of [run, upperDir]) mkdirSync(dir, { mode: 0o700 });
    } catch (error) {
      for (const dir of [run, upperDir]) rmSync(dir, { recursive: true, force: true });
      throw error;
    }
    const process = this.#spawner.launch();
    process.write(`${JSON.stringify(config)}\n`);
    return { process, limits, runtimeDir: run, upperDir, waited: false };
  }
}

function sameLimits(one: ContainerLimits, other: ContainerLimits): boolean {
  return (
    one.memoryBytes === other.memoryBytes &&
    one.cpuWeight === other.cpuWeight &&
    one.cpuQuota === other.cpuQuota &&
    one.pids === other.pids &&
    one.diskBytes === other.diskBytes
  );
}
