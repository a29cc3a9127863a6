/** One `sandboxd launch`: the process that is a container's parent on this machine. */
import type { LauncherEnd, LauncherProcess } from "./launcher-process.ts";
import type { Outcome } from "./protocol.ts";

/** The second line that `sandboxd launch` reads from its standard input: whose the container is. */
export interface StartConfig {
  env: Record<string, string>;
  hostname: string;
  caCertificatePem: string;
  /** As `host:port`: what goes to the relay besides ports 80 and 443. */
  ports: string[];
}

/** A parent that does not end this long after its container was killed is killed itself. */
const killGraceMs = 5_000;
const killed = 137;

export class Sandboxd {
  /** Settles when pid 1 inside is up; rejects with the reason when it never comes up. */
  readonly ready: Promise<void>;
  /** Settles when the container is over: at once when its parent says so, who has to tidy up after it. Never rejects. */
  readonly ended: Promise<Outcome>;
  /** Settles when the parent is gone too, and with it every mount. */
  readonly closed: Promise<void>;
  readonly #process: LauncherProcess;
  #innerPid: number | null = null;
  #reported: { exitCode: number; reason: string } | null = null;
  #stderr = "";
  #gone = false;
  #rejectReady: (error: Error) => void = () => undefined;
  #settleEnded: (outcome: Outcome) => void = () => undefined;

  /** `id` is for the log. */
  constructor(child: LauncherProcess, id: string, log: (line: string) => void) {
    this.#process = child;
    child.onErrorLine((line) => {
      this.#stderr = `${this.#stderr}${line}\n`.slice(-4096);
      log(`sandboxd ${id.slice(0, 12)}: ${line}`);
    });
    this.ready = new Promise((resolve, reject) => {
      child.onLine((line) => this.#onLine(line, resolve));
      this.#rejectReady = reject;
    });
    this.ready.catch(() => undefined);
    this.ended = new Promise((settle) => {
      this.#settleEnded = settle;
    });
    this.closed = child.closed.then((end) => this.#settleEnded(this.#end(end)));
  }

  /** Starts the container that the process has prepared. */
  start(config: StartConfig): void {
    this.#process.endInput(JSON.stringify(config));
  }

  /** Sends a signal to pid 1 inside. */
  signal(signal: number): void {
    if (this.#gone) return;
    if (signal === 9) this.kill();
    else if (signal === 15 || signal === 2) this.#process.kill(signal === 15 ? "SIGTERM" : "SIGINT");
    else if (this.#innerPid !== null) sendSignal(this.#innerPid, signal);
  }

  /** Ends everything inside at once. */
  kill(): void {
    if (this.#gone) return;
    if (this.#innerPid === null) {
      this.#process.kill("SIGKILL");
      return;
    }
    // The death of pid 1 ends its namespace; the parent then tidies up and reports.
    sendSignal(this.#innerPid, 9);
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), killGraceMs);
    this.closed.finally(() => clearTimeout(timer));
  }

  #onLine(line: string, ready: () => void): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      return;
    }
    if (typeof message !== "object" || message === null) return;
    if ("ready" in message && "pid" in message && typeof message.pid === "number") {
      this.#innerPid = message.pid;
      ready();
    } else if ("exit" in message && typeof message.exit === "number") {
      const [reason, text] = [stringField(message, "reason"), stringField(message, "message")];
      this.#reported = {
        exitCode: message.exit,
        reason: text === null ? (reason ?? "exited") : `${reason}: ${text}`,
      };
      if (this.#innerPid !== null)
        this.#settleEnded(this.#end({ code: message.exit, signal: null, error: null }));
    }
  }

  #end({ code, signal, error }: LauncherEnd): Outcome {
    this.#gone = true;
    if (error !== null) this.#stderr += error.message;
    const started = this.#innerPid !== null;
    const message =
      this.#reported?.reason ?? (this.#stderr.trim() || `sandboxd ended with ${signal ?? `status ${code}`}`);
    this.#rejectReady(new Error(message));
    if (!started && signal !== "SIGKILL") return { kind: "failed", message };
    if (this.#reported !== null) return { kind: "exited", ...this.#reported };
    return {
      kind: "exited",
      exitCode: code ?? killed,
      reason: `sandboxd: ended with ${signal ?? `status ${code}`}`,
    };
  }
}

function stringField(message: object, name: string): string | null {
  const value: unknown = Reflect.get(message, name);
  return typeof value === "string" ? value : null;
}

function sendSignal(pid: number, signal: number): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It ended meanwhile.
  }
}
