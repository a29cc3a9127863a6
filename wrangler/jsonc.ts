/** Writes JSON with comments: what a person should know stands beside the member it is about. */

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** One member of an object, with the comment lines that go above it. */
export interface Member {
  key: string;
  value: JsoncValue;
  comment?: string[];
}

/** A JSON value, or objects whose members may carry comments. */
export type JsoncValue = { plain: Json } | { members: Member[] } | { items: JsoncValue[] };

export const plain = (value: Json): JsoncValue => ({ plain: value });

/** Members without comments, in the order of the object's own keys; undefined ones are left out. */
export function members(object: Record<string, Json | undefined>): JsoncValue {
  return {
    members: Object.entries(object).flatMap(([key, value]) =>
      value === undefined ? [] : [{ key, value: plain(value) }],
    ),
  };
}

/** Objects on one line each: rows that are read as a table. */
export function renderJsonc(value: JsoncValue, indent = ""): string {
  const inner = `${indent}  `;
  if ("plain" in value) return renderPlain(value.plain, indent);
  if ("items" in value) {
    if (value.items.length === 0) return "[]";
    return `[\n${value.items.map((item) => inner + renderJsonc(item, inner)).join(",\n")}\n${indent}]`;
  }
  if (value.members.length === 0) return "{}";
  return `{\n${value.members.map((member) => renderMember(member, inner)).join(",\n")}\n${indent}}`;
}

/** A member with its comment, as it stands inside an object that is indented by `indent`. */
export function renderMember(member: Member, indent: string): string {
  const comment = (member.comment ?? []).map((line) => `${indent}// ${line}\n`).join("");
  return `${comment}${indent}${JSON.stringify(member.key)}: ${renderJsonc(member.value, indent)}`;
}

const lineWidth = 110;

function renderPlain(value: Json, indent: string): string {
  const short = oneLine(value);
  if (indent.length + short.length <= lineWidth) return short;
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    return `[\n${value.map((item) => inner + renderPlain(item, inner)).join(",\n")}\n${indent}]`;
  }
  if (typeof value === "object" && value !== null) {
    const lines = Object.entries(value).map(
      ([key, one]) => `${inner}${JSON.stringify(key)}: ${renderPlain(one, inner)}`,
    );
    return `{\n${lines.join(",\n")}\n${indent}}`;
  }
  return short;
}

function oneLine(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value);
  if (entries.length === 0) return "{}";
  return `{ ${entries.map(([key, one]) => `${JSON.stringify(key)}: ${oneLine(one)}`).join(", ")} }`;
}
