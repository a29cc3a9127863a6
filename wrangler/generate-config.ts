/** `npm run wrangler:config -- --env dev|preview_N|prd`: writes wrangler.jsonc for one environment. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { Command, Option } from "commander";
import { loadCore } from "../js/src/core/index.ts";
import { type ConfigOptions, parseAuthorizedKeys, renderConfig } from "./config.ts";
import { parseExisting } from "./existing.ts";
import { defaultBaseName } from "./names.ts";
import { describeExcess, describeTotals } from "./quota-report.ts";
import { reportRefusal, type Say } from "./refusal.ts";

const root = new URL("..", import.meta.url).pathname;

interface Flags {
  env: string;
  out: string;
  main: string;
  name: string;
  types?: string[];
  deleteClass: string[];
  environments: string[];
  quotaMemoryGib?: number;
  quotaVcpu?: number;
  quotaDiskGb?: number;
  authorizedKeys?: string;
  accountId?: string;
  jurisdiction?: string;
  transport: string;
  check: boolean;
}

const list = (text: string) =>
  text
    .split(",")
    .map((one) => one.trim())
    .filter(Boolean);
const collect = (text: string, before: string[]) => [...before, ...list(text)];

function command(): Command {
  return new Command("wrangler:config")
    .description(
      "Writes wrangler.jsonc for one environment: containers, Durable Objects, migrations, R2, secrets.",
    )
    .requiredOption("--env <name>", "dev, preview_<number> or prd")
    .option(
      "--out <file>",
      "where to write; its migrations and the members that are not ours are kept",
      "wrangler.jsonc",
    )
    .option("--main <file>", "the Worker's entry", "dist/worker/index.js")
    .option("--name <name>", "first part of the Worker's name", defaultBaseName)
    .option("--types <list>", "instance types to deploy, separated by commas (default: all)", list)
    .option(
      "--delete-class <class>",
      "a class whose objects may be deleted for good; may be repeated",
      collect,
      [],
    )
    .option("--environments <list>", "environments of the account to count against its quota", list, [
      "dev",
      "prd",
    ])
    .option("--quota-memory-gib <number>", "memory that the account may use", Number)
    .option("--quota-vcpu <number>", "vCPU that the account may use", Number)
    .option("--quota-disk-gb <number>", "disk that the account may use", Number)
    .option("--authorized-keys <file>", "ED25519 public keys that may SSH into containers")
    .option("--account-id <id>", "the Cloudflare account; presigned snapshot transfers need it")
    .addOption(new Option("--jurisdiction <name>", "of the bucket").choices(["eu", "fedramp"]))
    .addOption(
      new Option("--transport <name>", "how the SDK speaks to a container")
        .choices(["rpc", "http", "websocket"])
        .default("rpc"),
    )
    .option("--check", "write nothing; fail when the file is not what would be written", false)
    .addHelpText(
      "after",
      "\nExamples:\n  npm run wrangler:config -- --env dev\n  npm run wrangler:config -- --env preview_3 --out build/preview_3.jsonc",
    );
}

/** The command of the file's first comment: what decides the content, not where it was written to. */
function shownCommand(flags: Flags): string {
  const parts = ["npm run wrangler:config --", `--env ${flags.env}`];
  if (flags.name !== defaultBaseName) parts.push(`--name ${flags.name}`);
  if (flags.types !== undefined) parts.push(`--types ${flags.types.join(",")}`);
  if (flags.accountId !== undefined) parts.push(`--account-id ${flags.accountId}`);
  if (flags.jurisdiction !== undefined) parts.push(`--jurisdiction ${flags.jurisdiction}`);
  if (flags.transport !== "rpc") parts.push(`--transport ${flags.transport}`);
  return parts.join(" ");
}

function configOptions(flags: Flags, out: string): ConfigOptions {
  const fromOut = (path: string) => {
    const path_ = relative(dirname(out), resolve(root, path));
    return path_.startsWith(".") ? path_ : `./${path_}`;
  };
  return {
    environment: flags.env,
    baseName: flags.name,
    command: shownCommand(flags),
    paths: {
      schema: fromOut("node_modules/wrangler/config-schema.json"),
      main: fromOut(flags.main),
      dockerfile: fromOut("wrangler/Dockerfile"),
    },
    deletableClasses: flags.deleteClass,
    transport: flags.transport,
    ...(flags.types === undefined ? {} : { instanceTypes: flags.types }),
    ...(flags.accountId === undefined ? {} : { accountId: flags.accountId }),
    ...(flags.jurisdiction === undefined ? {} : { jurisdiction: flags.jurisdiction }),
    ...(flags.authorizedKeys === undefined
      ? {}
      : {
          authorizedKeys: parseAuthorizedKeys(
            readFileSync(flags.authorizedKeys, "utf8"),
            flags.authorizedKeys,
          ),
        }),
    ...(existsSync(out) ? { existing: parseExisting(readFileSync(out, "utf8"), out) } : {}),
  };
}

/** Runs the command line and gives its exit status; what it says goes to `say`. */
export async function generateConfig(argv: string[], say: Say): Promise<number> {
  try {
    return await generate(command().parse(argv, { from: "user" }).opts<Flags>(), say);
  } catch (error) {
    return reportRefusal(error, say);
  }
}

async function generate(flags: Flags, say: Say): Promise<number> {
  const core = await loadCore();
  const others = flags.environments.filter((name) => name !== flags.env).map((name) => ({ name }));
  const quota = core.checkQuota({
    environments: [
      { name: flags.env, ...(flags.types === undefined ? {} : { instanceTypes: flags.types }) },
      ...others,
    ],
    quota: {
      ...(flags.quotaMemoryGib === undefined ? {} : { memoryMib: Math.floor(flags.quotaMemoryGib * 1024) }),
      ...(flags.quotaVcpu === undefined ? {} : { vcpuSixteenths: Math.floor(flags.quotaVcpu * 16) }),
      ...(flags.quotaDiskGb === undefined ? {} : { diskMb: Math.floor(flags.quotaDiskGb * 1000) }),
    },
  });
  const excess = describeExcess(quota);
  if (excess.length > 0) {
    say.error(excess.join("\n"));
    return 1;
  }
  const out = resolve(root, flags.out);
  const text = renderConfig(core, configOptions(flags, out), quota);
  const current = existsSync(out) ? readFileSync(out, "utf8") : undefined;
  if (flags.check && text !== current) {
    say.error(`${out} is not what ${shownCommand(flags)} writes: run it and commit the result.`);
    return 1;
  }
  if (text !== current) {
    mkdirSync(dirname(out), { recursive: true });
    writeFileSync(out, text);
  }
  say.log(`${text === current ? "unchanged" : "wrote"} ${out}`);
  say.log(`${quota.environments.map(({ name }) => name).join(" + ")}: ${describeTotals(quota).join(", ")}`);
  return 0;
}

if (import.meta.main) process.exitCode = await generateConfig(process.argv.slice(2), console);
