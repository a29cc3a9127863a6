/** `npm run ensure-resources -- --env dev|preview_N|prd [--dry-run]`: the bucket of snapshots and its lifecycle rule. */

import Cloudflare from "cloudflare";
import { Command, Option } from "commander";
import { loadCore, SandboxError } from "../js/src/core/index.ts";
import { defaultBaseName, deploymentNames } from "./names.ts";
import { reportRefusal, type Say } from "./refusal.ts";
import { planResources } from "./resources.ts";

interface Flags {
  env: string;
  name: string;
  accountId?: string;
  jurisdiction?: "eu" | "fedramp";
  apiUrl?: string;
  dryRun: boolean;
}

function command(): Command {
  return new Command("ensure-resources")
    .description(
      "Makes what a deployment needs beside the Worker, and changes nothing that is there already.",
    )
    .requiredOption("--env <name>", "dev, preview_<number> or prd")
    .option("--name <name>", "first part of the Worker's name", defaultBaseName)
    .option("--account-id <id>", "the Cloudflare account (also CLOUDFLARE_ACCOUNT_ID)")
    .addOption(new Option("--jurisdiction <name>", "of the bucket").choices(["eu", "fedramp"]))
    .option("--api-url <url>", "another address of the API (also CLOUDFLARE_API_BASE_URL)")
    .option("--dry-run", "print what would be done and do nothing", false)
    .addHelpText(
      "after",
      "\nThe token is read from CLOUDFLARE_API_TOKEN; it needs Account > Workers R2 Storage > Edit.",
    );
}

function required(value: string | undefined, what: string): string {
  if (value !== undefined && value !== "") return value;
  throw new SandboxError({
    code: "invalid_input",
    message: `${what} is missing: set it in the environment${what === "CLOUDFLARE_ACCOUNT_ID" ? " or give --account-id" : ""}.`,
    details: { field: what },
    status: 400,
    retryable: false,
  });
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs the command line and gives its exit status; what it says goes to `say`. */
export async function ensureResources(argv: string[], env: Environment, say: Say): Promise<number> {
  try {
    await ensure(command().parse(argv, { from: "user" }).opts<Flags>(), env, say);
    return 0;
  } catch (error) {
    return reportRefusal(error, say);
  }
}

async function ensure(flags: Flags, env: Environment, say: Say): Promise<void> {
  const core = await loadCore();
  core.checkQuota({ environments: [{ name: flags.env }] }); // refuses an environment that there is not
  const apiUrl = flags.apiUrl ?? env.CLOUDFLARE_API_BASE_URL;
  const client = new Cloudflare({
    apiToken: required(env.CLOUDFLARE_API_TOKEN, "CLOUDFLARE_API_TOKEN"),
    ...(apiUrl === undefined ? {} : { baseURL: apiUrl }),
  });
  const plan = await planResources(client, {
    accountId: required(flags.accountId ?? env.CLOUDFLARE_ACCOUNT_ID, "CLOUDFLARE_ACCOUNT_ID"),
    bucketName: deploymentNames(flags.env, flags.name).bucketName,
    lifecycleRule: core.backupLifecycleRule(),
    ...(flags.jurisdiction === undefined ? {} : { jurisdiction: flags.jurisdiction }),
  });
  for (const present of plan.present) say.log(`present: ${present}`);
  for (const step of plan.steps) {
    say.log(`${flags.dryRun ? "would " : ""}${step.description}`);
    if (!flags.dryRun) await step.run();
  }
  say.log(plan.steps.length === 0 ? "nothing to do" : flags.dryRun ? "dry run: nothing was changed" : "done");
}

if (import.meta.main) process.exitCode = await ensureResources(process.argv.slice(2), process.env, console);
