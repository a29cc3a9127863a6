/** `itx secrets`: material comes from standard input only, so that it is in no history and no process list. */
import { text } from "node:stream/consumers";
import { Command } from "commander";
import { nothingToRemove } from "./errors.ts";
import { printResult, printRows } from "./output.ts";
import { withItx } from "./target.ts";

const secretPath = (name: string) => (name.startsWith("/") ? name : `/secrets/${name}`);

export function secretsCommand(): Command {
  const secrets = new Command("secrets").description("secrets of the project: set, list, remove; never read");
  secrets
    .command("set")
    .description("store material from standard input, for the origins that may receive it")
    .argument("<name>", "the secret's name or path")
    .requiredOption("--origin <origin...>", "an origin it may go to, such as https://api.example.com")
    .option("--fields", "the material is JSON with fields")
    .addHelpText(
      "after",
      '\nExample:\n  $ printf %s "$KEY" | itx secrets set openai --origin https://api.openai.com',
    )
    .action(async (name: string, options: { origin: string[]; fields?: boolean }, command: Command) => {
      if (process.stdin.isTTY === true)
        command.error("error: the material is read from standard input; pipe it in");
      const input = await text(process.stdin);
      const material = options.fields === true ? parseFields(input, command) : input;
      await withItx(command, async (itx, { json }) => {
        const path = secretPath(name);
        const stored = await itx.secrets.get(path).set({ material, origins: options.origin });
        printResult(`${path} stored, version ${stored.version}`, stored, json);
      });
    });
  secrets
    .command("list")
    .description("names, versions and origins")
    .action(async (_options: unknown, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const list = await itx.secrets.list();
        printRows(
          ["PATH", "VERSION", "ORIGINS"],
          list.map((secret) => [secret.path, String(secret.version), secret.origins.join(",")]),
          list,
          json,
        );
      }),
    );
  secrets
    .command("rm")
    .description("delete the material for good")
    .argument("<name>")
    .action(async (name: string, _options: unknown, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const path = secretPath(name);
        const known = (await itx.secrets.list()).some((secret) => secret.path === path);
        // Deleted either way: a deletion that was interrupted may have left material behind.
        await itx.secrets.get(path).delete();
        if (!known) throw nothingToRemove("secret_not_found", `secret ${path}`, { path });
        printResult(`${path} deleted`, { path }, json);
      }),
    );
  return secrets;
}

function parseFields(input: string, command: Command): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(input);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // The parser's own message would quote the material.
  }
  return command.error("error: --fields wants one JSON object on standard input");
}
