/** The commands that the project's pages name: in blocks, which run as they stand, and in the text. */
import { readdirSync, readFileSync } from "node:fs";
import { blocksOf } from "./blocks.ts";

const root = new URL("../../", import.meta.url).pathname;
const read = (page: string) => readFileSync(`${root}${page}`, "utf8");

const guide = readdirSync(`${root}docs/guide`).map((name) => `docs/guide/${name}`);
export const pages = ["README.md", "CONTRIBUTING.md", ...guide].sort();

const manifest: { scripts: Record<string, string> } = JSON.parse(read("package.json"));
export const scripts: Readonly<Record<string, string>> = manifest.scripts;

/** These two stand in a block, and are run by CI itself, as `npm test` and in tests/e2e/demo. */
export const RUN_ELSEWHERE = /^npm (run demo|test)\b/;

export interface Documented {
  /** As it is written, without a comment behind it. */
  command: string;
  page: string;
  /** Whether it stands in a block of shell. */
  block: boolean;
}

/** What begins a command of this project. */
const OURS = /^(npm (--prefix \S+ )?(run|test)\b|npx itx\b|itx |bash scripts\/)/;

/** A script may be named by its name alone, where others stand before it in full. */
function inline(code: string): string[] {
  if (OURS.test(code)) return [code];
  return code.includes(":") && code in scripts ? [`npm run ${code}`] : [];
}

export function documented(page: string): Documented[] {
  const text = read(page).replaceAll(/^```[\s\S]*?^```/gm, "");
  const inText = [...text.matchAll(/`([^`]+)`/g)].flatMap(([, code]) => inline(code ?? ""));
  const inBlocks = blocksOf(page)
    .filter(({ language }) => language === "sh")
    .flatMap(({ code }) => code.split("\n"))
    .map((line) => line.replace(/\s+#.*$/, ""))
    .filter((line) => OURS.test(line));
  return [
    ...inText.map((command) => ({ command, page, block: false })),
    ...inBlocks.map((command) => ({ command, page, block: true })),
  ];
}

/** Every leaf of the command line, from its generated reference. */
export function subcommands(): string[] {
  const titles = [...read("docs/reference/cli.md").matchAll(/^## (itx .+)$/gm)].map(
    ([, title]) => title ?? "",
  );
  return titles.filter((title) => !titles.some((other) => other.startsWith(`${title} `)));
}

/** The script that a command runs, if it runs one. */
export const scriptOf = (command: string): string | undefined =>
  /^npm (?:--prefix \S+ )?(?:run (?:--silent )?)?([\w:-]+)/.exec(command)?.[1];
