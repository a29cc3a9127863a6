/** `itx run`: JavaScript with an `itx` in scope. */
import { Command } from "commander";
import { SandboxError } from "../core/error.ts";
import type { Itx } from "../node/itx.ts";
import { readGiven } from "./input.ts";
import { printJson } from "./output.ts";
import { withItx } from "./target.ts";

type Script = (itx: Itx) => Promise<unknown>;
// The constructor of async functions has no global name.
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
  parameter: string,
  body: string,
) => Script;

function parse(code: string, where: string): Script {
  try {
    return new AsyncFunction("itx", code);
  } catch (error) {
    throw new SandboxError({
      code: "invalid_script",
      message: `${where} is no JavaScript of an async function's body: ${error instanceof Error ? error.message : String(error)}`,
      details: { where },
      status: 400,
      retryable: false,
    });
  }
}

/** What the script itself threw is no fault of ours, and has a code of its own. */
function ofScript(error: unknown): never {
  if (error instanceof Error && !("code" in error)) Object.assign(error, { code: "script_failed" });
  throw error;
}

export function runCommand(): Command {
  return new Command("run")
    .description("run JavaScript with `itx`, the project's API, in scope; prints what it returns")
    .option("-e, --eval <code>", "the code; `await` and `return` work at its top level")
    .argument("[file]", "a file with the code")
    .addHelpText("after", "\nExample:\n  $ itx run --context prj_demo -e 'return itx.sandboxes.list()'")
    .action(async (file: string | undefined, options: { eval?: string }, command: Command) => {
      const code = options.eval ?? (file === undefined ? undefined : await readGiven(file, "the script"));
      if (code === undefined) command.error("error: give the code with -e, or a file");
      const script = parse(code, file ?? "-e");
      await withItx(command, async (itx) => {
        const result = await script(itx).catch(ofScript);
        if (result !== undefined) printJson(result);
      });
    });
}
