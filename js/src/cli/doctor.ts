/** `itx doctor`: what works on this machine, by what means, and what to install. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Command } from "commander";
import color from "picocolors";
import { sandboxdPath } from "../engine/sandboxd-path.ts";
import { dockerEngine } from "../node/docker-mode.ts";
import { ExitStatus } from "./errors.ts";
import { printJson } from "./output.ts";
import { globals } from "./target.ts";

interface Finding {
  check: string;
  ok: boolean;
  /** Whether the engine cannot do without it. */
  required: boolean;
  /** By what means it works, or why it does not. */
  means: string;
  advice?: string;
}

/** What `sandboxd doctor --json` prints. */
interface Report {
  findings: { name: string; ok: boolean; required: boolean; detail: string; advice: string }[];
}

async function findings(): Promise<Finding[]> {
  if (process.platform !== "linux")
    return [
      {
        check: "embedded engine",
        ok: false,
        required: true,
        means: `this is ${process.platform}; the engine needs Linux`,
        advice: "use Docker: SANDBOX_ENGINE=docker",
      },
    ];
  // It exits with 1 where something required is missing, and prints its findings all the same.
  const run = promisify(execFile)(await sandboxdPath(), ["doctor", "--json"]);
  const { stdout } = await run.catch((error: { stdout: string }) => error);
  const report: Report = JSON.parse(stdout);
  const checks = report.findings.map(({ name, ok, required, detail, advice }) => ({
    check: name.replaceAll("_", " "),
    ok,
    required,
    means: detail === "" ? (ok ? "works" : "does not work") : detail,
    ...(advice === "" ? {} : { advice }),
  }));
  return [...checks, await dockerFinding()];
}

/** Docker is another mode, so its absence is advice and no failure. */
async function dockerFinding(): Promise<Finding> {
  const docker = await dockerEngine();
  const finding = { check: "docker mode (optional)", ok: true, required: false };
  if ("version" in docker) return { ...finding, means: `Docker ${docker.version}` };
  return {
    ...finding,
    means: docker.absence,
    advice: `only SANDBOX_ENGINE=docker needs one: ${docker.advice}`,
  };
}

export function doctorCommand(): Command {
  return new Command("doctor")
    .description("what works on this machine, and what to install")
    .action(async (_options: unknown, command: Command) => {
      const list = await findings();
      if (globals(command).json === true) printJson(list);
      else
        for (const { check, ok, means, advice } of list) {
          console.log(`${ok ? color.green("ok") : color.red("no")}  ${check}: ${means}`);
          if (advice !== undefined) console.log(`      ${advice}`);
        }
      if (list.some(({ ok, required }) => required && !ok)) throw new ExitStatus(1);
    });
}
