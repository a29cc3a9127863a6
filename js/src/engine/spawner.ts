/** The process that starts launchers: a small one, since this one would have to be copied for each of them. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { logLine } from "../worker/log.ts";
import { LauncherProcess } from "./launcher-process.ts";

export interface SpawnerOptions {
  /** The `sandboxd` binary. */
  binary: string;
  /** The path of the socket that it is to listen on, in a folder that only this user can enter. */
  socket: string;
  log: (line: string) => void;
}

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** One `sandboxd spawn`. */
interface Running {
  readonly child: Child;
  /** Settles when launchers can be asked for; rejects with the reason when they never can. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
}

/** How long launchers that are ending may take to tidy up before all is ended. */
const closeMs = 5_000;
/** What a connection meets when the spawner is gone, and nobody has heard of it. */
const goneCodes: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ECONNRESET", "ENOENT"]);

/** Starts a spawner for the first launcher, and another one for the next after its death, which is that of all its launchers. */
export class Spawner {
  readonly #options: SpawnerOptions;
  readonly #launchers = new Set<LauncherProcess>();
  readonly #all = new Set<Running>();
  #current: Running | null = null;
  #closing = false;

  constructor(options: SpawnerOptions) {
    this.#options = options;
  }

  /** A launcher that is on its way. What is written to it meanwhile is kept. */
  launch(): LauncherProcess {
    const launcher = new LauncherProcess();
    this.#launchers.add(launcher);
    launcher.exited.then(() => this.#launchers.delete(launcher));
    this.#connect(launcher).catch((error: Error) => launcher.fail(error));
    return launcher;
  }

  async close(): Promise<void> {
    this.#closing = true;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeMs);
    });
    await Promise.race([patience, Promise.all([...this.#launchers].map(({ exited }) => exited))]);
    clearTimeout(timer);
    for (const { child } of this.#all) {
      child.ref();
      child.kill("SIGKILL");
    }
    await Promise.all([...this.#all, ...this.#launchers].map(({ exited }) => exited));
  }

  async #connect(launcher: LauncherProcess): Promise<void> {
    for (let again = true; ; again = false) {
      if (this.#closing) throw new Error("the engine is closing");
      this.#current ??= this.#watched(this.#start());
      const running = this.#current;
      await running.ready;
      try {
        await launcher.connect(this.#options.socket, randomUUID());
        break;
      } catch (error) {
        const gone = error instanceof Error && "code" in error && goneCodes.has(error.code);
        if (!gone || !again) throw error;
        this.#forget(running);
      }
    }
  }

  #start(): Running {
    const { binary, socket, log } = this.#options;
    // Nothing of this process's environment is handed down: it may hold keys.
    const env = { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin" };
    const child = spawn(binary, ["spawn", socket], { stdio: ["pipe", "pipe", "pipe"], env });
    if (child.pid === undefined) return neverStarted(child);
    for (const emitter of [child, child.stdin]) emitter.on("error", () => undefined);
    let complaint = "";
    createInterface({ input: child.stderr }).on("line", (line) => {
      complaint = line;
      log(`sandboxd spawn: ${line}`);
    });
    const ready = new Promise<void>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", () => resolve());
      child.once("close", (code, signal) =>
        reject(new Error(complaint || `sandboxd spawn ended with ${signal ?? `status ${code}`}`)),
      );
    });
    const exited = new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
    });
    ready.then(
      () => stopHolding(child),
      () => undefined,
    );
    child.once("exit", (code, signal) => this.#onExit(code, signal));
    return { child, ready, exited };
  }

  #watched(running: Running): Running {
    this.#all.add(running);
    running.exited.then(() => {
      this.#forget(running);
      this.#all.delete(running);
    });
    return running;
  }

  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    if (this.#closing) return;
    const fields = { code, signal, launchers: this.#launchers.size };
    this.#options.log(logLine("error", "the spawner ended by itself, and every container with it", fields));
  }

  #forget(running: Running): void {
    if (this.#current === running) this.#current = null;
  }
}

/** Without descriptors it does not even have its streams; why is told in a moment. */
function neverStarted(child: Child): Running {
  const ready = once(child, "error").then(([error]) => Promise.reject(error));
  const exited = ready.catch(() => undefined);
  return { child, ready, exited };
}

/** A spawner that waits for work keeps no program alive. */
function stopHolding(child: Child): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout, child.stderr]) {
    if ("unref" in stream && typeof stream.unref === "function") stream.unref();
  }
}
