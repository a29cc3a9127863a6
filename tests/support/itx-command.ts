/** Runs `itx` as a person would: its own process, its own folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

const root = new URL("../../", import.meta.url).pathname;
const entry = `${root}js/src/cli/main.ts`;

export interface Outcome {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** One that goes on until it is ended. */
export interface Running extends AsyncDisposable {
  /** The first line of its output that matches; a process that ends without one is a failure. */
  line(pattern: RegExp): Promise<string>;
  /** Ends it by a signal and gives its exit status. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** A folder with an `itx` on its PATH; `close` ends the server that a test left running there. */
export class Terminal {
  readonly folder = mkdtempSync(join(tmpdir(), "itx-"));
  readonly #bin = join(this.folder, ".bin");

  constructor() {
    mkBin(this.#bin);
  }

  get env(): NodeJS.ProcessEnv {
    const { ITX_URL, ITX_TOKEN, ITX_CONTEXT, ...rest } = process.env;
    return { ...rest, PATH: `${this.#bin}:${process.env.PATH}`, NO_COLOR: "1", REPOSITORY: root };
  }

  /** A line of bash. */
  sh(line: string, input = ""): Promise<Outcome> {
    return this.#run("bash", ["--norc", "-euo", "pipefail", "-c", line], input);
  }

  itx(args: string[], input = ""): Promise<Outcome> {
    return this.#run(join(this.#bin, "itx"), args, input);
  }

  start(args: string[]): Running {
    const child = spawn(join(this.#bin, "itx"), args, {
      cwd: this.folder,
      env: this.env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    return running(child, createInterface(child.stdout));
  }

  async #run(command: string, args: string[], input: string): Promise<Outcome> {
    const child = spawn(command, args, { cwd: this.folder, env: this.env, stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.on("error", () => {}); // a command that reads nothing closes its end
    child.stdin.end(input);
    const exited = new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", resolve);
    });
    const [stdout, stderr, status] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
    return { status, stdout, stderr };
  }

  async close(): Promise<void> {
    await this.itx(["dev", "--stop"]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function running(child: ChildProcess, lines: AsyncIterable<string>): Running {
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return exited;
  };
  return {
    async line(pattern) {
      for await (const line of lines) if (pattern.test(line)) return line;
      throw new Error(`no line matched ${pattern} before the end`);
    },
    end,
    [Symbol.asyncDispose]: async () => void (await end("SIGKILL")),
  };
}

function mkBin(folder: string): void {
  mkdirSync(folder);
  const path = join(folder, "itx");
  writeFileSync(
    path,
    `#!/bin/sh\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${entry}" "$@"\n`,
  );
  chmodSync(path, 0o755);
}
