/** `itx connections`: accounts whose secrets the project's sandboxes may use. */
import { Command } from "commander";
import { nothingToRemove } from "./errors.ts";
import { printResult, printRows } from "./output.ts";
import { withItx } from "./target.ts";

export function connectionsCommand(): Command {
  const connections = new Command("connections").description("connected accounts (GitHub)");
  connections.command("list").action(async (_options: unknown, command: Command) =>
    withItx(command, async (itx, { json }) => {
      const list = await itx.connections.list();
      printRows(
        ["KIND", "NAME", "SECRET"],
        list.map((c) => [c.kind, c.name, c.secretPath]),
        list,
        json,
      );
    }),
  );
  connections
    .command("set")
    .description("connect a GitHub account by the secret that holds its accessToken")
    .argument("<name>")
    .requiredOption("--secret <path>", "the secret's path, /secrets/…")
    .action(async (name: string, options: { secret: string }, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const connection = { kind: "github" as const, name, secretPath: options.secret };
        await itx.connections.set(connection);
        printResult(`github ${name} connected`, connection, json);
      }),
    );
  connections
    .command("rm")
    .argument("<name>")
    .action(async (name: string, _options: unknown, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const known = (await itx.connections.list()).some((c) => c.kind === "github" && c.name === name);
        if (!known) throw nothingToRemove("not_found", `github connection ${name}`, { kind: "github", name });
        await itx.connections.delete({ kind: "github", name });
        printResult(`github ${name} disconnected`, { kind: "github", name }, json);
      }),
    );
  return connections;
}
