/** `itx egress`: the project's door. */
import { text } from "node:stream/consumers";
import { Command, InvalidArgumentError } from "commander";
import { SandboxError } from "../core/error.ts";
import type { EgressPolicyDocument } from "../node/itx.ts";
import { followEvents } from "./events.ts";
import { readGiven, wholeNumber } from "./input.ts";
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
    .option("-H, --header <header...>", "a header, `Name: value`", header)
    .action(async (url: string, options: { method: string; header?: [string, string][] }, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const headers = options.header ?? [];
        const decision = await itx.egress.test({ method: options.method, url, headers });
        printResult(decided(decision), decision, json);
      }),
    );
  egress
    .command("tail")
    .description("follow the door's decisions")
    .option("--after <offset>", "start after this event", wholeNumber(0), 0)
    .action(async (options: { after: number }, command: Command) =>
      withItx(command, (itx, { json }) => followEvents(itx.streams.get("/egress"), options.after, json)),
    );
  return egress;
}

function header(text: string, others: [string, string][] = []): [string, string][] {
  const colon = text.indexOf(":");
  if (colon < 1) throw new InvalidArgumentError("It must be a name, a colon and a value.");
  return [...others, [text.slice(0, colon).trim(), text.slice(colon + 1).trim()]];
}

/** By what a request is decided, or what is wrong with the request itself. */
function decided({ kind, rule, code, detail }: Record<string, unknown>): string {
  if (code !== undefined && code !== "egress_denied") return `${kind}: ${detail}`;
  return `${kind} by ${rule === null ? "the default" : `rule ${rule}`}`;
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
