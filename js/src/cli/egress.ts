/** `itx egress`: the project's door. */
import { text } from "node:stream/consumers";
import { Command } from "commander";
import { SandboxError } from "../core/error.ts";
import type { EgressPolicyDocument } from "../node/itx.ts";
import { followEvents } from "./events.ts";
import { readGiven } from "./input.ts";
import { printJson, printResult, printRows } from "./output.ts";
import { withItx } from "./target.ts";

export function egressCommand(): Command {
  const egress = new Command("egress").description("what may leave the project's sandboxes");
  egress
    .command("show")
    .description("the policy in force")
    .action(async (_options: unknown, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const policy = await itx.egress.getPolicy();
        if (json !== true && process.stdout.isTTY === true) {
          console.log(`default: ${policy.default}`);
          printRows(
            ["RULE", "ACTION", "HOSTS", "METHODS"],
            policy.rules.map((rule) => [
              rule.id,
              rule.action,
              rule.hosts?.join(",") ?? "any",
              rule.methods?.join(",") ?? "any",
            ]),
            policy,
            false,
          );
        } else printJson(policy);
      }),
    );
  egress
    .command("set")
    .description("replace the policy by a JSON file, or standard input with -")
    .argument("<file>")
    .action(async (file: string, _options: unknown, command: Command) => {
      const document = file === "-" ? await text(process.stdin) : await readGiven(file, "the policy");
      const policy = parsePolicy(document, file);
      await withItx(command, async (itx, { json }) => {
        const stored = await itx.egress.setPolicy(policy);
        printResult(`${policy.rules.length} rule(s) in force`, stored, json);
      });
    });
  egress
    .command("test")
    .description("which rule would decide a request; sends nothing")
    .argument("<url>")
    .option("-X, --method <method>", "the method", "GET")
    .option("-H, --header <header...>", "a header, `Name: value`")
    .action(async (url: string, options: { method: string; header?: string[] }, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const headers = (options.header ?? []).map((header): [string, string] => {
          const colon = header.indexOf(":");
          return [header.slice(0, colon).trim(), header.slice(colon + 1).trim()];
        });
        const decision = await itx.egress.test({ method: options.method, url, headers });
        printResult(
          `${String(decision.kind)} by ${decision.rule === null ? "the default" : `rule ${String(decision.rule)}`}`,
          decision,
          json,
        );
      }),
    );
  egress
    .command("tail")
    .description("follow the door's decisions")
    .option("--after <offset>", "start after this event", Number, 0)
    .action(async (options: { after: number }, command: Command) =>
      withItx(command, (itx, { json }) => followEvents(itx.streams.get("/egress"), options.after, json)),
    );
  return egress;
}

function parsePolicy(document: string, file: string): EgressPolicyDocument {
  try {
    return JSON.parse(document);
  } catch (error) {
    const where = file === "-" ? "standard input" : file;
    throw new SandboxError({
      code: "invalid_json",
      message: `${where} holds no JSON: ${error instanceof Error ? error.message : String(error)}`,
      details: { file },
      status: 400,
      retryable: false,
    });
  }
}
