/** Reads a wrangler.jsonc that is there already, so that its history and the members that are not ours survive. */

import { type Node, type ParseError, parse, parseTree, printParseErrorCode } from "jsonc-parser";
import { SandboxError } from "../js/src/core/error.ts";
import type { Json } from "./jsonc.ts";

/** A top-level member as text: the comments above it, and the member as it was written. */
export interface ForeignMember {
  key: string;
  comments: string[];
  text: string;
}

export interface ExistingConfig {
  values: { [key: string]: Json };
  members: ForeignMember[];
  /** Comments after the last member. */
  tail: string[];
}

const options = { allowTrailingComma: true };

/** Refuses text that is no JSONC object: writing over it would lose what somebody keeps there. */
export function parseExisting(text: string, file: string): ExistingConfig {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, options);
  const [first] = errors;
  if (root?.type !== "object" || first !== undefined) {
    const reason =
      first === undefined
        ? "it is no object"
        : `${printParseErrorCode(first.error)} at character ${first.offset}`;
    throw new SandboxError({
      code: "invalid_json",
      message: `${file} is no wrangler.jsonc: ${reason}. Repair it, move it away, or write elsewhere with --out.`,
      details: { file, reason },
      status: 400,
      retryable: false,
    });
  }
  const members: ForeignMember[] = [];
  let end = root.offset + 1;
  let previous: ForeignMember | undefined;
  for (const property of root.children ?? []) {
    const [key] = property.children ?? [];
    if (key === undefined) continue;
    const gap = splitGap(text.slice(end, property.offset));
    previous?.comments.push(...gap.sameLine);
    previous = { key: String(key.value), comments: gap.above, text: textOf(text, property) };
    members.push(previous);
    end = property.offset + property.length;
  }
  const gap = splitGap(text.slice(end, root.offset + root.length - 1));
  previous?.comments.push(...gap.sameLine);
  return { values: parse(text, [], options), members, tail: gap.above };
}

const textOf = (text: string, node: Node): string => text.slice(node.offset, node.offset + node.length);

/** Between two members stand a comma and comments: those on the line of the comma speak about the member before it. */
function splitGap(gap: string): { sameLine: string[]; above: string[] } {
  const withoutComma = gap.replace(/^((?:\s|\/\/[^\n]*\n|\/\*[\s\S]*?\*\/)*),/, "$1");
  const lines = withoutComma.split("\n");
  const comment = (line: string) => line.trim();
  return {
    sameLine: lines.slice(0, 1).map(comment).filter(Boolean),
    above: lines.slice(1).map(comment).filter(Boolean),
  };
}
