/** The fenced code blocks of the project's pages. */
import { readFileSync } from "node:fs";

export interface Block {
  /** `file:line`, for a failure's message. */
  at: string;
  language: string;
  code: string;
}

const root = new URL("../../", import.meta.url).pathname;

export function blocksOf(page: string): Block[] {
  const lines = readFileSync(`${root}${page}`, "utf8").split("\n");
  const blocks: Block[] = [];
  for (let index = 0; index < lines.length; index++) {
    const fence = /^```(\S*)/.exec(lines[index] ?? "");
    if (fence === null) continue;
    const start = index + 1;
    const end = lines.findIndex((line, position) => position >= start && line.startsWith("```"));
    if (end < 0) throw new Error(`${page}:${start}: a fence that never closes`);
    blocks.push({
      at: `${page}:${start}`,
      language: fence[1] ?? "",
      code: lines.slice(start, end).join("\n"),
    });
    index = end;
  }
  return blocks;
}
