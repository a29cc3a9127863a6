#!/usr/bin/env node
/** `itx`: one command for the local server and for a deployed Worker. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { completionCommand } from "./completion.ts";
import { connectionsCommand } from "./connections.ts";
import { devCommand } from "./dev.ts";
import { doctorCommand } from "./doctor.ts";
import { egressCommand } from "./egress.ts";
import { engineCommand } from "./engine.ts";
import { ExitStatus, reportError } from "./errors.ts";
import { runCommand } from "./run.ts";
import { sandboxesCommand } from "./sandboxes.ts";
import { secretsCommand } from "./secrets.ts";
import { tokenCommand } from "./token.ts";

function version(): string {
  // The same from the sources and from dist/js.
  const manifest: { version: string } = JSON.parse(
    readFileSync(join(import.meta.dirname, "../../../package.json"), "utf8"),
  );
  return manifest.version;
}

/** Builds the whole command tree; the reference page is generated from it. */
export function createProgram(): Command {
  const program = new Command("itx")
    .description("Project-scoped Linux sandboxes, kept like pets")
    .option("--url <url>", "the Worker's address; the server of this folder without it (also ITX_URL)")
    .option("--token <token>", "a token for --url (also ITX_TOKEN)")
    .option("--context <project>", "the project (also ITX_CONTEXT)", process.env.ITX_CONTEXT ?? "prj_local")
    .option("--dir <folder>", "where the local server keeps its state", ".itx")
    .option("--json", "print JSON")
    .version(version(), "--version", "print the version")
    .addHelpText(
      "after",
      [
        "",
        "Examples:",
        "  $ itx dev --detach",
        "  $ itx sandboxes create main --type basic",
        "  $ itx sandboxes exec main -- ls -la /workspace",
        "  $ itx run -e 'return itx.sandboxes.list()'",
        "",
        "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 125 exec itself failed; exec passes the command's own.",
      ].join("\n"),
    );
  for (const command of [
    devCommand(),
    engineCommand(),
    runCommand(),
    sandboxesCommand(),
    secretsCommand(),
    egressCommand(),
    connectionsCommand(),
    tokenCommand(),
    doctorCommand(),
  ])
    program.addCommand(command);
  program.addCommand(completionCommand(program));
  return exitOverride(program);
}

/** What to do after wrong usage, where there is more to say than to read the help. */
const hints: Readonly<Record<string, string>> = {
  exec: "(the command comes after --, as in: itx sandboxes exec main -- ls -la)",
};

/** Commander would end the process itself; the one place that ends it is `main`. */
function exitOverride(command: Command): Command {
  command.exitOverride().showHelpAfterError(hints[command.name()] ?? "(add --help for what is allowed)");
  for (const child of command.commands) exitOverride(child);
  return command;
}

/** Runs the command line and gives the exit status. */
export async function main(argv: readonly string[]): Promise<number> {
  const program = createProgram();
  try {
    await program.parseAsync(argv, { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof ExitStatus) return error.status;
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    return reportError(error, program.opts<{ json?: boolean }>().json === true);
  }
}

/** A reader that has seen enough, such as `head`, ends the command as it ends any other. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(process.exitCode ?? 0);
}

if (import.meta.main !== false) process.stdout.on("error", endWithReader);
if (import.meta.main !== false) process.exitCode = await main(process.argv.slice(2));
