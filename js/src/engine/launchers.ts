/** The processes that become containers. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";

export type LauncherProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** How long after a start nobody is expected to wait for the next one. */
const quietMs = 1_000;

/**
 * Keeps one launcher waiting for its configuration: a process of Node's size takes longer to start another than that takes for all the
 * rest of a container's start, and can do nothing else meanwhile.
 */
export class Launchers {
  readonly #binary: string;
  #spare: LauncherProcess | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(binary: string) {
    this.#binary = binary;
  }

  /** A launcher that waits for its configuration on its standard input. */
  take(): LauncherProcess {
    const spare = this.#spare;
    this.#spare = null;
    this.#timer ??= setTimeout(() => this.prepare(), quietMs).unref();
    return spare ?? this.#spawn();
  }

  /** Has one ready, at a moment when nobody waits. */
  prepare(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#closed || this.#spare !== null) return;
    try {
      const spare = this.#spawn();
      this.#spare = spare;
      const forget = () => {
        if (this.#spare === spare) this.#spare = null;
      };
      spare.once("exit", forget);
      spare.once("error", forget);
    } catch {
      // The next start meets the same fault, and tells it.
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    const spare = this.#spare;
    this.#spare = null;
    if (spare === null) return;
    const gone = new Promise((resolve) => spare.once("close", resolve));
    spare.kill("SIGKILL");
    await gone;
  }

  #spawn(): LauncherProcess {
    // Nothing of this process's environment is handed down: it may hold keys.
    return spawn(this.#binary, ["launch"], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin" },
    });
  }
}
