/**
 * Every command that the pages name has a run in CI, and so has every script and every subcommand. Blocks of the README and the guide run in
 * docs.test.ts; everything else is in a table here: it runs right here at its smallest size, or in a file that is named.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Outcome } from "../support/itx-command.ts";
import { account, type R2Api, startR2Api, token } from "../wrangler/r2-api.ts";
import { documented, pages, RUN_ELSEWHERE, scriptOf, scripts, subcommands } from "./documented.ts";

const root = new URL("../../", import.meta.url).pathname;

/** Which file runs a command, and the text in it that does. */
interface Elsewhere {
  file: string;
  runs: string;
}
/** Run here: what it prints, and what is added where the documented text leaves something out. */
interface Here {
  prints: RegExp;
  adds?: string;
}

const cli = (runs: string): Elsewhere => ({ file: "tests/cli/cli.test.ts", runs });
const RESULT = /^RESULT \{.+\}$/m;

const here: Record<string, Here> = {
  "bash scripts/setup.sh": { prints: /^$/ },
  "npm run setup": { prints: /scripts\/setup\.sh/ },
  "npm run prepack": { prints: /scripts\/setup\.sh/ },
  "npm run package": { prints: /iterate-sandboxes-linux-x64-[\d.]+\.tgz$/m },
  "npm run docs": { prints: /generate-docs/ },
  "npm run check -- --fix": { prints: /^checked \d+ files/m },
  "npm run test:long": { prints: /1 passed/ },
  "npm run bench": { prints: RESULT },
  "npm run bench:core": { prints: RESULT },
  "npm run bench:engine": { prints: RESULT },
  "npm run bench:egress": { prints: RESULT },
  "npm run bench:catalogue": { prints: RESULT },
  "npm run soak": { prints: /^1 kills .*, 0 losses$/m },
  "npm run soak:many": { prints: RESULT },
  "npm run fuzz": { prints: /^fuzz: 1 fuzzers ran clean/m },
  "npm run coverage": { prints: /^src\/strings\.cpp .*%$/m },
  "npm run tidy": { prints: /^clang-tidy: no finding in core\/src\/strings\.cpp/m },
  "npm run ensure-resources -- --env dev": { prints: /^would create bucket /m, adds: "--dry-run" },
  "npx itx": { prints: /^Usage: itx /m, adds: "--help" },
};

const elsewhere: Record<string, Elsewhere> = {
  "npm test": { file: ".ci/run", runs: "npm test" },
  "npm run demo": { file: "tests/e2e/demo.test.ts", runs: 'spawn("npm", ["run", "demo"]' },
  "npm run check": { file: "scripts/test.sh", runs: "scripts/check.ts" },
  "npx itx engine --worker quick-start -- wrangler dev": {
    file: "tests/package/package.test.ts",
    runs: 'startDev(folder, quickStart, "quick-start")',
  },
  "itx engine": { file: "tests/package/dev.ts", runs: '"engine"' },
  "itx dev": cli('spawnItx(["--dir", "foreground", "dev", "--port", "0"])'),
  "itx dev --stop": cli('itx("dev --stop")'),
  "itx doctor": cli('itx("--json doctor")'),
  "itx run": cli('"run", "--context"'),
  "itx token": cli('itx("token --context prj_one --expires 60")'),
  "itx completion": cli('"completion bash"'),
  "itx --url https://… --token … sandboxes list": cli("--context prj_one sandboxes list`)).status).toBe(0)"),
  "itx sandboxes list": cli('itx("sandboxes list")'),
  "itx sandboxes create": cli('itx("sandboxes create life'),
  "itx sandboxes exec": cli('itx("sandboxes exec life'),
  "itx sandboxes shell": cli('itx("sandboxes shell verbs"'),
  "itx sandboxes logs": cli('itx("sandboxes logs verbs'),
  "itx sandboxes events": cli('itx("sandboxes events life")'),
  "itx sandboxes sleep": cli('itx("sandboxes sleep life")'),
  "itx sandboxes start": cli('itx("sandboxes start verbs")'),
  "itx sandboxes restart": cli('itx("sandboxes restart life")'),
  "itx sandboxes destroy": cli('itx("sandboxes destroy life")'),
  "itx secrets set": cli('itx("secrets set weather'),
  "itx secrets list": cli('itx("--json secrets list")'),
  "itx secrets rm": cli('itx("secrets rm weather")'),
  "itx egress show": cli('itx("egress show")'),
  "itx egress set": cli('itx("egress set -"'),
  "itx egress test": cli('itx("egress test https://two.test/x")'),
  "itx egress test <url>": cli('itx("egress test https://two.test/x")'),
  "itx egress tail": cli('spawnItx(["egress", "tail"])'),
  "itx connections list": cli('itx("connections list")'),
  "itx connections set": cli('itx("connections set acme'),
  "itx connections rm": cli('itx("connections rm acme")'),
};

const named = pages.flatMap(documented);
/** What docs.test.ts runs as it stands. */
const inBlocks = named.filter(({ block, command }) => block && !RUN_ELSEWHERE.test(command));
const needed = [
  ...new Set([
    ...named.filter((one) => !inBlocks.includes(one)).map(({ command }) => command),
    ...Object.keys(scripts).map((script) => (script === "test" ? "npm test" : `npm run ${script}`)),
    ...subcommands(),
  ]),
].sort();

/** A script has run when it ran with arguments. */
function hasRun(command: string): boolean {
  const tabled = [...Object.keys(here), ...Object.keys(elsewhere)];
  return (
    tabled.some((known) => known === command || known.startsWith(`${command} -- `)) ||
    inBlocks.some(
      (block) => scriptOf(block.command) !== undefined && `npm run ${scriptOf(block.command)}` === command,
    )
  );
}

let api: R2Api;
beforeAll(async () => {
  api = await startR2Api();
});
afterAll(() => api.close());

function run(command: string): Promise<Outcome> {
  // Those of the runner around this file would reach the one that a command starts.
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|NODE_ENV|LONG|FULL)/.test(name),
  );
  const child = spawn("bash", ["-c", command], {
    cwd: root,
    env: {
      ...Object.fromEntries(inherited),
      SIZE: "smoke",
      NO_COLOR: "1",
      CLOUDFLARE_API_TOKEN: token,
      CLOUDFLARE_ACCOUNT_ID: account,
      CLOUDFLARE_API_BASE_URL: api.url,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return Promise.all([exited, text(child.stdout), text(child.stderr)]).then(([status, stdout, stderr]) => ({
    status,
    stdout,
    stderr,
  }));
}

/** The numbers of a result's line, at any depth; each has to be one. */
function notFinite(line: string): string[] {
  const values: Record<string, unknown> = JSON.parse(line.replace(/^RESULT /, ""));
  const entries = Object.entries(values).filter(([, value]) => typeof value !== "boolean");
  if (entries.length === 0) return ["there is none"];
  return entries.filter(([, value]) => !Number.isFinite(value)).map(([name, value]) => `${name}: ${value}`);
}

describe("the table", () => {
  test("has every command that is documented, and every script and subcommand", () => {
    expect(needed.filter((command) => !hasRun(command))).toEqual([]);
  });

  test("has nothing that is not there", () => {
    const known = new Set(needed);
    expect(
      [...Object.keys(here), ...Object.keys(elsewhere)].filter((command) => !known.has(command)),
    ).toEqual([]);
  });

  test("names no script that there is not", () => {
    const scriptsNamed = named.map(({ command }) => scriptOf(command)).filter((name) => name !== undefined);
    expect(scriptsNamed.filter((name) => !(name in scripts))).toEqual([]);
  });

  test.each(Object.entries(elsewhere))("%s is run by the file that is named", (_command, { file, runs }) => {
    expect(existsSync(`${root}${file}`)).toBe(true);
    // Not the matcher for texts, which would print the whole file.
    expect(readFileSync(`${root}${file}`, "utf8").includes(runs), `${file}: ${runs}`).toBe(true);
  });

  test("a script that CI runs by its file is that file", () => {
    expect(scripts.check).toContain("scripts/check.ts");
    expect(scripts.test).toContain("scripts/test.sh");
  });
});

// Two at a time: none of them judges time, and all of them take most of theirs with one processor.
describe.concurrent("at their smallest size", () => {
  test.each(Object.entries(here))("%s", { timeout: 300_000 }, async (command, { prints, adds }) => {
    const { status, stdout, stderr } = await run(adds === undefined ? command : `${command} ${adds}`);
    expect(status, stdout + stderr).toBe(0);
    expect(stdout).toMatch(prints);
    if (prints === RESULT) expect(notFinite(RESULT.exec(stdout)?.[0] ?? "")).toEqual([]);
  });
});
