/**
 * `npm run check`: formatters, linters, types, and the rules of this tree that no linter knows. Prints every finding of
 * every check before it fails. `--fix` formats instead.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const root = new URL("..", import.meta.url).pathname;
const fix = process.argv.includes("--fix");
/** SIZE=smoke: without the types and the reference, which take the most of the time. */
const smoke = process.env.SIZE === "smoke";

const MAX_FILE_LINES = 400;
const MAX_FUNCTION_LINES = 60;
/** What is over a limit, and why it stays. */
const EXCEPTIONS: Record<string, string> = {
  "engine/src/agent/context_drivers.cpp": "two programs for interpreters, as text",
  "engine/src/agent/server.cpp": "a class whose body is in its source file",
  "engine/include/sandboxd/agent/runtime.hpp": "a class, no function",
};

const tracked = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
  cwd: root,
  encoding: "utf8",
})
  .split("\n")
  .filter(Boolean);
const sources = (pattern: RegExp) => tracked.filter((path) => pattern.test(path));

const findings: string[] = [];

function run(title: string, command: string, args: string[]): void {
  const result = spawnSync(command, args, { cwd: root, encoding: "utf8", maxBuffer: 64 << 20 });
  if (result.error !== undefined)
    findings.push(`${title}: ${command} could not be started: ${result.error.message}`);
  else if (result.status !== 0) findings.push(`${title}:\n${result.stdout}${result.stderr}`.trimEnd());
}

/** Functions over the limit, found by the indentation that the formatters enforce: a head ending in `{` to its closing brace. */
function longFunctions(path: string, lines: string[]): string[] {
  const head = path.endsWith(".ts")
    ? /^( *)(export )?(async )?(function\*? \w+|(static |private |override |async |get |set )*[#\w]+\(.*\).*) ?\{$/
    : /^( *)[\w:<>,&*[\]~ ]+ \**&?[\w:~]+\(.*\).* ?\{$/;
  const long: string[] = [];
  for (let start = 0; start < lines.length; start++) {
    const match = head.exec(lines[start] ?? "");
    if (
      match === null ||
      /^\s*(if|for|while|switch|namespace|class|struct|describe|return)\b/.test(lines[start] ?? "")
    )
      continue;
    const close = `${match[1] ?? ""}}`;
    const end = lines.findIndex((line, index) => index > start && line === close);
    if (end > 0 && end - start + 1 > MAX_FUNCTION_LINES)
      long.push(`${path}:${start + 1}: a function of ${end - start + 1} lines (limit ${MAX_FUNCTION_LINES})`);
  }
  return long;
}

function treeRules(): void {
  for (const path of sources(/^(core|bindings|engine|js|scripts|wrangler|tests)\/.*\.(ts|cpp|hpp|sh)$/)) {
    let text: string;
    try {
      text = readFileSync(`${root}${path}`, "utf8");
    } catch {
      continue; // deleted in the work tree, not yet in the index
    }
    const lines = text.split("\n");
    if (path in EXCEPTIONS) continue;
    if (lines.length - 1 > MAX_FILE_LINES)
      findings.push(`${path}: ${lines.length - 1} lines (limit ${MAX_FILE_LINES})`);
    if (!path.startsWith("tests/")) findings.push(...longFunctions(path, lines));
    lines.forEach((line, index) => {
      const at = `${path}:${index + 1}`;
      if (path !== "scripts/check.ts") {
        if (/\b(it|test|describe)\.(skip|only|todo)\b/.test(line))
          findings.push(`${at}: a skipped or focused test`);
        if (/\b(TODO|FIXME|XXX)\b/.test(line)) findings.push(`${at}: an unfinished note`);
        if (
          path.endsWith(".ts") &&
          !path.startsWith("tests/") &&
          /(: any\b|\bas any\b|\bas unknown as\b|@ts-(ignore|nocheck))/.test(line)
        )
          findings.push(`${at}: an escape from the type checker`);
        if (
          /^core\//.test(path) &&
          /#include <(iostream|fstream|thread|random|chrono|ctime|locale|regex)>/.test(line)
        )
          findings.push(`${at}: the core is pure: no ${line.slice(9)}`);
      }
    });
  }
}

const cpp = sources(/^(core|bindings|engine|tests)\/.*\.(cpp|hpp)$/);
if (fix) {
  run("clang-format", "clang-format", ["-i", ...cpp]);
  run("biome", "biome", ["check", "--write"]);
}
if (cpp.length > 0) run("clang-format", "clang-format", ["--dry-run", "--Werror", ...cpp]);
run("biome", "biome", ["check", "--max-diagnostics=200"]);
if (!smoke) {
  run("types", "tsc", ["-p", "tsconfig.check.json"]);
  run("generated reference", process.execPath, [
    "--disable-warning=ExperimentalWarning",
    "scripts/generate-docs.ts",
    "--check",
  ]);
}
treeRules();

if (findings.length > 0) {
  console.error(findings.join("\n\n"));
  console.error(`\n${findings.length} finding(s); \`npm run check -- --fix\` mends what the formatters can.`);
  process.exit(1);
}
for (const [path, reason] of Object.entries(EXCEPTIONS)) console.log(`over a limit: ${path} (${reason})`);
console.log(
  `checked ${tracked.length} files: formats, lints, ${smoke ? "" : "types "}and the rules of the tree hold`,
);
