/** `itx token`: mints a token for one project with the server's own keys. */
import { resolve } from "node:path";
import { Command } from "commander";
import { loadCore } from "../core/index.ts";
import { readKeys } from "../node/state-dir.ts";
import { mintToken } from "../worker/tokens.ts";
import { wholeNumber } from "./input.ts";
import { printResult } from "./output.ts";
import { globals } from "./target.ts";

export function tokenCommand(): Command {
  return new Command("token")
    .description("mint a token for --context, with the keys of the local server or TOKEN_KEYS")
    .option("--expires <seconds>", "how long it is good for", wholeNumber(1), 3600)
    .option("--operator", "for every project instead of one")
    .addHelpText("after", "\nExample:\n  $ itx token --context prj_demo --expires 600")
    .action(async (options: { expires: number; operator?: boolean }, command: Command) => {
      const { dir, context, json } = globals(command);
      if (options.operator !== true) (await loadCore()).assertProjectId(context);
      const keys = process.env.TOKEN_KEYS ?? (await readKeys(resolve(dir))).tokenKeys;
      const token = await mintToken(keys, {
        ...(options.operator === true ? { operator: true as const } : { projectId: context }),
        expiresInSeconds: options.expires,
      });
      printResult(token, { token, project: context, expiresInSeconds: options.expires }, json);
    });
}
