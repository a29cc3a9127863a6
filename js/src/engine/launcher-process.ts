/** One `sandboxd launch` as its spawner's socket shows it: a child of a child. */
import { once } from "node:events";
import { Socket } from "node:net";
import { createInterface } from "node:readline";

/** How it ended; `error` if it never started. */
export interface LauncherEnd {
  code: number | null;
  signal: string | null;
  error: Error | null;
}

type LineListener = (line: string) => void;

/** The lines of one stream, the earlier ones too, for the one who listens. */
class Lines {
  #kept: string[] = [];
  #listener: LineListener | null = null;

  push(line: string): void {
    if (this.#listener === null) this.#kept.push(line);
    else this.#listener(line);
  }

  listen(listener: LineListener): void {
    this.#listener = listener;
    for (const line of this.#kept.splice(0)) listener(line);
  }
}

export class LauncherProcess {
  /** Settles when the process is gone. Never rejects. */
  readonly exited: Promise<LauncherEnd>;
  /** Settles when it is gone and its streams have ended, which what runs in its container may hold. Never rejects. */
  readonly closed: Promise<LauncherEnd>;
  readonly #output = new Lines();
  readonly #complaints = new Lines();
  /** Its standard input and output, once there is a connection. */
  #control: Socket | null = null;
  /** What was written before that. */
  #unsent = "";
  #inputEnded = false;
  #pid: number | null = null;
  #signals: NodeJS.Signals[] = [];
  #end: LauncherEnd | null = null;
  #settleExited: (end: LauncherEnd) => void = () => undefined;
  #settleStreams: () => void = () => undefined;

  constructor() {
    this.exited = new Promise((resolve) => {
      this.#settleExited = resolve;
    });
    const streams = new Promise<void>((resolve) => {
      this.#settleStreams = resolve;
    });
    this.closed = Promise.all([this.exited, streams]).then(([end]) => end);
  }

  /** Null until its spawner has told it. */
  get pid(): number | null {
    return this.#pid;
  }

  /** Null while it lives. */
  get end(): LauncherEnd | null {
    return this.#end;
  }

  /** What it prints, line by line. */
  onLine(listener: LineListener): void {
    this.#output.listen(listener);
  }

  /** What it complains of, line by line. */
  onErrorLine(listener: LineListener): void {
    this.#complaints.listen(listener);
  }

  /** To its standard input. */
  write(text: string): void {
    if (this.#inputEnded || this.#end !== null) return;
    if (this.#control === null) this.#unsent += text;
    else this.#control.write(text);
  }

  /** Ends its standard input. */
  endInput(text = ""): void {
    if (this.#inputEnded || this.#end !== null) return;
    this.write(text);
    this.#inputEnded = true;
    this.#control?.end();
  }

  /** Takes effect as soon as its id is known, which no other process has while its spawner lives, before its end is known here too. */
  kill(signal: NodeJS.Signals): void {
    if (this.#end !== null) return;
    if (this.#pid === null) {
      this.#signals.push(signal);
      return;
    }
    try {
      process.kill(this.#pid, signal);
    } catch {
      // Its spawner has died, and it with that.
    }
  }

  /** Asks the spawner at `path` for it. Its owner's alone. */
  async connect(path: string, id: string): Promise<void> {
    const sockets = [new Socket({ allowHalfOpen: true }), new Socket()] as const;
    const [control, errors] = sockets;
    // An error closes them, which is heard of by itself.
    for (const socket of sockets) socket.on("error", () => undefined);
    try {
      await Promise.all(sockets.map((socket) => once(socket.connect(path), "connect")));
    } catch (error) {
      for (const socket of sockets) socket.destroy();
      throw error;
    }
    eachLine(errors, (line) => this.#complaints.push(line));
    whenOver(errors, ["close"], () => this.#settleStreams());
    errors.write(`${id}e`);
    eachLine(control, (line) => this.#onLine(line));
    // Without a word of how it ended, its spawner is gone, and the kernel has killed it.
    whenOver(control, ["end", "close"], () => this.#finish({ code: null, signal: "SIGKILL", error: null }));
    control.write(`${id}c${this.#unsent}`);
    this.#control = control;
    if (this.#inputEnded) control.end();
  }

  /** It will never start. Its owner's alone. */
  fail(error: Error): void {
    this.#finish({ code: null, signal: null, error });
    this.#settleStreams();
  }

  #onLine(line: string): void {
    const message = line.startsWith('{"launcher"') || line.startsWith('{"ended"') ? parsed(line) : null;
    if (message === null) {
      this.#output.push(line);
    } else if ("launcher" in message && typeof message.launcher === "number") {
      this.#pid = message.launcher;
      for (const signal of this.#signals.splice(0)) this.kill(signal);
    } else if ("ended" in message) {
      this.#finish({ ...endOf(message.ended), error: null });
    }
  }

  #finish(end: LauncherEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    // For the spawner the sign that nobody signals its id any more.
    this.#control?.destroy();
    this.#settleExited(end);
  }
}

function eachLine(socket: Socket, listener: LineListener): void {
  createInterface({ input: socket })
    .on("line", listener)
    .on("error", () => undefined);
}

/** The first of two connections may break off while the second is made. */
function whenOver(socket: Socket, events: readonly string[], listener: () => void): void {
  for (const event of events) socket.once(event, listener);
  if (socket.destroyed) listener();
}

function parsed(line: string): object | null {
  try {
    const message: unknown = JSON.parse(line);
    return typeof message === "object" ? message : null;
  } catch {
    return null;
  }
}

function endOf(ended: unknown): { code: number | null; signal: string | null } {
  if (typeof ended !== "object" || ended === null) return { code: null, signal: null };
  const code = "code" in ended && typeof ended.code === "number" ? ended.code : null;
  const signal = "signal" in ended && typeof ended.signal === "string" ? ended.signal : null;
  return { code, signal };
}
