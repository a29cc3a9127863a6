/** `itx engine`: the embedded engine for a Worker that `wrangler dev` runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { Command } from "commander";
import { SandboxError } from "../core/error.ts";
import { type DevEngine, startDevEngine } from "../node/dev-engine.ts";
import { ExitStatus } from "./errors.ts";
import { printResult } from "./output.ts";
import { globals } from "./target.ts";

interface EngineOptions {
  worker: string;
  name: string;
}

export function engineCommand(): Command {
  return new Command("engine")
    .description("play the containers of a Worker that wrangler dev runs")
    .argument(
      "[command...]",
      "runs beside the engine, and ends it when it ends; ENGINE_SECRET is given to it with --var",
    )
    .requiredOption("--worker <name>", "the Worker's name in its wrangler.jsonc")
    .option("--name <name>", "what the Worker binds as the service ENGINE", "itx-engine")
    .addHelpText(
      "after",
      [
        "",
        "The Worker's wrangler.jsonc needs, for local development only:",
        '  "services": [{ "binding": "ENGINE", "service": "itx-engine" }], "dev": { "enable_containers": false }',
        "",
        "Examples:",
        "  $ itx engine --worker quick-start -- wrangler dev",
      ].join("\n"),
    )
    .action(async (command: string[], options: EngineOptions, self: Command) => {
      const global = globals(self);
      await using engine = await startDevEngine({
        worker: options.worker,
        name: options.name,
        dir: resolve(global.dir),
        log: (line) => process.stderr.write(`${line}\n`),
      });
      // Miniflare would end this process at a signal, before the sandboxes sleep and the command has ended.
      for (const signal of signals) process.removeAllListeners(signal);
      const asked = firstSignal();
      const [program, ...args] = command;
      if (program === undefined) {
        const variable = `ENGINE_SECRET:${engine.secret}`;
        printResult(
          `start the Worker with: wrangler dev --var ${variable} (Ctrl-C ends the engine; end it before the Worker)`,
          { variable },
          global.json,
        );
        await asked;
        await putToSleep(engine);
        return;
      }
      const beside = runBeside(program, [...args, "--var", `ENGINE_SECRET:${engine.secret}`]);
      const first = await Promise.race([asked.then(() => null), beside.ended]);
      if (first === null) {
        await putToSleep(engine, beside.kill);
        beside.end();
      } else tellLost(engine);
      const status = await beside.ended;
      if (status !== 0) throw new ExitStatus(status);
    });
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

function firstSignal(): Promise<void> {
  const heard = new AbortController();
  const waits = signals.map((signal) => once(process, signal, { signal: heard.signal }));
  for (const wait of waits) wait.catch(() => undefined);
  return Promise.race(waits).then(() => heard.abort());
}

const sandboxes = (count: number) => `${count} sandbox${count === 1 ? "" : "es"}`;

/** While the Worker still runs: only it can take the snapshots. */
async function putToSleep(engine: DevEngine, killBeside: () => void = () => undefined): Promise<void> {
  for (const signal of signals) {
    process.once(signal, () => {
      killBeside();
      process.exit(130);
    });
  }
  const count = engine.running().length;
  if (count === 0) return;
  process.stderr.write(`putting ${sandboxes(count)} to sleep; again to end at once\n`);
  await engine.sleepAll();
}

function tellLost(engine: DevEngine): void {
  const count = engine.running().length;
  if (count === 0) return;
  process.stderr.write(
    `${sandboxes(count)} ended without a snapshot: the command ended first, and only its Worker can take one; end \`itx engine\` instead, with Ctrl-C\n`,
  );
}

function notFound(program: string): SandboxError {
  return new SandboxError({
    code: "program_not_found",
    message: `there is no program ${JSON.stringify(program)} on the PATH; install it in the project (npm install --save-dev ${program}) and run itx by npx, or give its path`,
    details: { program },
    status: 400,
    retryable: false,
  });
}

interface Beside {
  /** Its exit status. */
  ended: Promise<number>;
  end(): void;
  kill(): void;
}

/**
 * The command in a session of its own, with nothing to read: neither the terminal's Ctrl-C nor a key that it reads by itself ends it
 * before its sandboxes sleep.
 */
function runBeside(program: string, args: string[]): Beside {
  const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"], detached: true });
  const send = (signal: NodeJS.Signals) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-child.pid, signal);
  };
  return {
    ended: once(child, "exit").then(
      ([code, signal]) => (typeof code === "number" ? code : signal === "SIGINT" ? 130 : 143),
      (error: NodeJS.ErrnoException) => {
        throw error.code === "ENOENT" ? notFound(program) : error;
      },
    ),
    end: () => send("SIGTERM"),
    kill: () => send("SIGKILL"),
  };
}
