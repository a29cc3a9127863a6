/** `itx run`: JavaScript with an `itx` in scope. */
import { readFile } from "node:fs/promises";
import { Command } from "commander";
import type { Itx } from "../node/itx.ts";
import { printJson } from "./output.ts";
import { withItx } from "./target.ts";

type Script = (itx: Itx) => Promise<unknown>;
// The constructor of async functions has no global name.
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
  parameter: string,
  body: string,
) => Script;

export function runCommand(): Command {
  return new Command("run")
    .description("run JavaScript with `itx`, the project's API, in scope; prints what it returns")
    .option("-e, --eval <code>", "the code; `await` and `return` work at its top level")
    .argument("[file]", "a file with the code")
    .addHelpText("after", "\nExample:\n  $ itx run --context prj_demo -e 'return itx.sandboxes.list()'")
    .action(async (file: string | undefined, options: { eval?: string }, command: Command) => {
      const code = options.eval ?? (file === undefined ? undefined : await readFile(file, "utf8"));
      if (code === undefined) command.error("error: give the code with -e, or a file");
      const script = new AsyncFunction("itx", code);
      await withItx(command, async (itx) => {
        const result = await script(itx);
        if (result !== undefined) printJson(result);
      });
    });
}
