/** `itx sandboxes exec`: output as it comes, and the command's own exit code. */
import { Command } from "commander";
import { EventSourceParserStream } from "eventsource-parser/stream";
import type { Itx } from "../node/itx.ts";
import { ExitStatus, reportError } from "./errors.ts";
import { wholeNumber } from "./input.ts";
import { printJson } from "./output.ts";
import { sandboxPath, variables } from "./sandboxes.ts";
import { globals, withItx } from "./target.ts";

interface ExecFlags {
  cwd?: string;
  env?: string[];
  timeout?: number;
}

/** What a failure of exec itself ends with, so that no command's own code can be mistaken for it. */
const EXEC_FAILED = 125;

export function execCommand(): Command {
  return new Command("exec")
    .description("run a command; stdout, stderr and the exit code are its own")
    .argument("<name>", "the sandbox's name or path")
    .argument("<command...>", "the command, after --; one argument is a shell line")
    .option("--cwd <folder>", "where it runs")
    .option("--env <name=value...>", "a variable of this command")
    .option("--timeout <ms>", "its time limit in milliseconds", wholeNumber(0))
    .passThroughOptions()
    .addHelpText("after", "\nExample:\n  $ itx sandboxes exec main -- git -C /workspace/app status")
    .action(async (name: string, words: string[], flags: ExecFlags, command: Command) => {
      const options = {
        ...(flags.cwd === undefined ? {} : { cwd: flags.cwd }),
        ...(flags.env === undefined ? {} : { env: variables(flags.env, command) }),
        ...(flags.timeout === undefined ? {} : { timeout: flags.timeout }),
      };
      const json = globals(command).json === true;
      let status: number;
      try {
        status = await withItx(command, (itx) =>
          exec(itx, sandboxPath(name), shellLine(words), options, json),
        );
      } catch (error) {
        status = reportError(error, json, EXEC_FAILED);
      }
      throw new ExitStatus(status);
    });
}

/** One word is a shell line as it is; several are quoted, so that they arrive as they were given. */
function shellLine(words: readonly string[]): string {
  if (words.length === 1) return words[0] ?? "";
  return words
    .map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(" ");
}

async function exec(itx: Itx, path: string, line: string, options: object, json: boolean): Promise<number> {
  const sandbox = itx.sandboxes.get(path);
  if (json) {
    const result = await sandbox.exec(line, options);
    printJson({ exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr });
    return result.exitCode;
  }
  const stream = await sandbox.execStream(line, options);
  const events = stream.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  for await (const { data } of events) {
    const event: { type: string; data?: string; exitCode?: number; error?: string } = JSON.parse(data);
    if (event.type === "stdout") process.stdout.write(event.data ?? "");
    else if (event.type === "stderr") process.stderr.write(event.data ?? "");
    else if (event.type === "complete") return event.exitCode ?? 0;
    else if (event.type === "error") throw new Error(event.error ?? "the command's stream failed");
  }
  throw new Error("the command's output ended before its exit code came");
}
