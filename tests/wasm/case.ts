import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { isSandboxError } from "../../js/src/core/error.ts";

/** A case from a real user's report, told apart from our API: an adapter maps its `call` to the core. */
export interface Case {
  id: string;
  call: string;
  input: Record<string, unknown>;
  expect: unknown;
  /** Other whole answers that also pass. */
  alternatives?: unknown[];
  why: string;
}

const folder = new URL("../vectors/cases/", import.meta.url).pathname;

export function readCases(calls: ReadonlySet<string>): Case[] {
  return readdirSync(folder)
    .map((name): Case => JSON.parse(readFileSync(`${folder}${name}`, "utf8")))
    .filter(({ call }) => calls.has(call));
}

/** A value, or `{ ok: false, code }` where the core refuses. */
export function attempt(run: () => object): object {
  try {
    return { ok: true, ...run() };
  } catch (error) {
    if (!isSandboxError(error)) throw error;
    return { ok: false, code: error.code };
  }
}

/** Whether an answer has all that is expected. Of a refusal only `ok` counts: the code is a category for the reader. */
export function matches(expected: unknown, actual: unknown): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((item, index) => matches(item, actual[index]))
    );
  }
  if (typeof expected !== "object" || expected === null) return isDeepStrictEqual(expected, actual);
  if (typeof actual !== "object" || actual === null) return false;
  const fields = new Map(Object.entries(actual));
  return Object.entries(expected).every(
    ([key, value]) => (key === "code" && fields.get("ok") === false) || matches(value, fields.get(key)),
  );
}

export function passes({ expect, alternatives = [] }: Case, actual: unknown): boolean {
  return [expect, ...alternatives].some((wanted) => matches(wanted, actual));
}
