/** `itx engine`: the embedded engine for a Worker that `wrangler dev` runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { Command } from "commander";
import { SandboxError } from "../core/error.ts";
import { startDevEngine } from "../node/dev-engine.ts";
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
      // Miniflare would end this process at a signal, before the command and the containers have ended.
      for (const signal of ["SIGINT", "SIGTERM"]) process.removeAllListeners(signal);
      const [program, ...args] = command;
      if (program === undefined) {
        const variable = `ENGINE_SECRET:${engine.secret}`;
        printResult(
          `start the Worker with: wrangler dev --var ${variable} (Ctrl-C ends the engine)`,
          { variable },
          global.json,
        );
        await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
        return;
      }
      const status = await runBeside(program, [...args, "--var", `ENGINE_SECRET:${engine.secret}`]);
      if (status !== 0) throw new ExitStatus(status);
    });
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

/** The terminal sends Ctrl-C to both; the engine outlives the command, so that its containers end in order. */
async function runBeside(program: string, args: string[]): Promise<number> {
  const child = spawn(program, args, { stdio: "inherit" });
  const ignore = () => undefined;
  const forward = () => child.kill("SIGTERM");
  process.on("SIGINT", ignore).on("SIGTERM", forward);
  try {
    const [code, signal] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ENOENT" ? notFound(program) : error;
    });
    return typeof code === "number" ? code : signal === "SIGINT" ? 130 : 143;
  } finally {
    process.off("SIGINT", ignore).off("SIGTERM", forward);
  }
}
