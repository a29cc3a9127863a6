/** `npm run dev` of a project: `itx engine` beside `wrangler dev`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { home } from "./projects.ts";

export interface Dev extends AsyncDisposable {
  /** What the Worker answers to a GET. */
  get(path: string): Promise<unknown>;
  /** What both have said. */
  readonly log: readonly string[];
  /** Ends the engine as a terminal or a supervisor does; its exit status. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

export async function startDev(project: string, folder: string, worker: string): Promise<Dev> {
  const itx = `${project}/node_modules/iterate-sandboxes/dist/js/cli/main.js`;
  const args = [
    itx,
    "engine",
    "--worker",
    worker,
    "--",
    "wrangler",
    "dev",
    "--port",
    "0",
    "--inspector-port",
    "0",
  ];
  const child = spawn(process.execPath, args, {
    cwd: folder,
    env: home(project),
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log: string[] = [];
  const url = await readyUrl(child, log).catch((error: Error) => {
    child.kill("SIGKILL");
    throw error;
  });
  const exit = once(child, "close").then(([code]: (number | null)[]) => code ?? null);
  const end = (signal: NodeJS.Signals) => {
    child.kill(signal);
    return exit;
  };
  return {
    async get(path) {
      const response = await fetch(new URL(path, url));
      const text = await response.text();
      if (!response.ok) throw new Error(`${path}: ${response.status} ${text}\n${log.join("\n")}`);
      return JSON.parse(text);
    },
    log,
    end,
    async [Symbol.asyncDispose]() {
      await end("SIGTERM");
    },
  };
}

function readyUrl(child: ChildProcess, log: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        log.push(line);
        const ready = /Ready on (http:\/\/\S+)/.exec(line);
        if (ready?.[1] !== undefined) resolve(ready[1]);
      });
    }
    child.once("exit", (code) => reject(new Error(`wrangler dev ended with ${code}:\n${log.join("\n")}`)));
  });
}
