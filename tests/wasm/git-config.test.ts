/** The line that configures git, run by a shell: it has to say the same where it writes the file as where git does. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadCore } from "../../js/src/core/index.ts";

const core = await loadCore();
const homes = mkdtempSync(join(tmpdir(), "git-config-"));
afterAll(() => rmSync(homes, { recursive: true, force: true }));

interface Home {
  name: string;
  /** Files that are there before, by their path in the home. */
  files: Record<string, string>;
  env?: Record<string, string>;
}

/** What git reads after the lines were run one after another. */
function configured(home: Home, lines: string[]): string[] {
  const root = mkdtempSync(join(homes, "home-"));
  for (const [path, text] of Object.entries(home.files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const env = { PATH: process.env.PATH, HOME: root, GIT_CONFIG_NOSYSTEM: "1", ...home.env };
  for (const line of lines) execFileSync("/bin/bash", ["-c", line], { env, cwd: root });
  return execFileSync("git", ["config", "--global", "--list", "-z"], { env, cwd: root, encoding: "utf8" })
    .split("\0")
    .filter((entry) => entry !== "")
    .sort();
}

const homesToConfigure: Home[] = [
  { name: "nothing", files: {} },
  { name: "a configuration", files: { ".gitconfig": "[user]\n\tname = before\n\tname = twice\n" } },
  { name: "an empty configuration", files: { ".gitconfig": "" } },
  { name: "one in .config", files: { ".config/git/config": "[user]\n\temail = before@example.com\n" } },
  { name: "one named by a variable", files: {}, env: { GIT_CONFIG_GLOBAL: "own" } },
];

const identities = [
  { name: "Ada", email: "ada@example.com", placeholder: 'getSecret("/secrets/a", { field: "accessToken" })' },
  { name: 'O\'Neil; rm -rf / # "quoted" \\ $(x) `y` %s', email: "  blanks  ", placeholder: null },
  { name: "…漢字 🚀", email: "[section]=value", placeholder: 'a\\"b' },
  { name: null, email: null, placeholder: null },
];

test.each(homesToConfigure)("where there is $name, git reads what was set", (home) => {
  for (const identity of identities) {
    const set = configured(home, [core.gitConfigShell(identity)]);
    expect(set).toContain(`user.name\n${identity.name ?? "iterate"}`);
    expect(set).toContain(`user.email\n${identity.email ?? "iterate[bot]@users.noreply.github.com"}`);
    expect(set.filter((entry) => entry.startsWith("user."))).toHaveLength(2);
    const header = `http.https://github.com/.extraheader\nAUTHORIZATION: basic ${Buffer.from(`x-access-token:${identity.placeholder}`).toString("base64")}`;
    expect(set.filter((entry) => entry.startsWith("http."))).toEqual(
      identity.placeholder === null ? [] : [header],
    );
  }
});

test("a later line replaces an earlier one, and takes a token's header away; what else was set stays", () => {
  const [first, second] = identities.map((identity) => core.gitConfigShell(identity));
  if (first === undefined || second === undefined) throw new Error("two identities are needed");
  const nothing: Home = { name: "nothing", files: {} };
  const own = "git config --global alias.st status";
  expect(configured(nothing, [first, own, second])).toEqual(
    ["alias.st\nstatus", ...configured(nothing, [second])].sort(),
  );
  expect(configured(nothing, [second, own, first])).toEqual(
    ["alias.st\nstatus", ...configured(nothing, [first])].sort(),
  );
});
