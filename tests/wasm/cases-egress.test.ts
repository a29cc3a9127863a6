import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { loadCore } from "../../js/src/core/index.ts";
import { adapters, elsewhere, type Json, type Row, rowsOf } from "./cases-egress-adapters.ts";

interface Case {
  id: string;
  call: string;
  input: Row;
  expect: Row;
  why: string;
  alternatives?: Row[];
}

const folder = `${import.meta.dirname}/../vectors/cases`;
const AREAS = /^(env|egr|sec|oai|bkp|exe|prc|fil|ses|eng)-|^cfg-0[137]\.json$/;
const cases = readdirSync(folder)
  .filter((name) => name.endsWith(".json") && AREAS.test(name))
  .map((name): Case => JSON.parse(readFileSync(`${folder}/${name}`, "utf8")));

const core = await loadCore();

const isRow = (value: Json | undefined): value is Row =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isPairs = (value: Json): boolean =>
  Array.isArray(value) && value.every((pair) => Array.isArray(pair) && pair.length === 2);

const sortedPairs = (value: Json): string[] =>
  (value as [string, string][]).map(([name, text]) => `${name.toLowerCase()}: ${text}`).sort();

/** Whether the answer holds what is wanted: objects by their wanted members, refusals by `ok` alone. */
function holds(wanted: Json, got: Json | undefined, key = ""): boolean {
  if (wanted === "<64 hex>") return typeof got === "string" && /^[0-9a-f]{64}$/.test(got);
  if (got === undefined) return false;
  if (key === "headers" && isPairs(wanted)) return same(sortedPairs(wanted), sortedPairs(got));
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(got) && got.length === wanted.length && wanted.every((item, i) => holds(item, got[i]))
    );
  }
  if (!isRow(wanted)) return Object.is(wanted, got);
  if (!isRow(got)) return false;
  const exact = key === "headers" || key === "env" || key === "stored" || key === "query";
  if (exact) return same(wanted, got);
  const ignored =
    wanted.ok === false ? ["code", "mustNotContain", "part", "path", "status"] : ["mustNotContain"];
  return Object.entries(wanted).every(
    ([name, value]) => ignored.includes(name) || holds(value, got[name], name),
  );
}

const sorted = (value: unknown): unknown =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value;
const same = (left: unknown, right: unknown): boolean =>
  JSON.stringify(left, (_, value) => sorted(value)) === JSON.stringify(right, (_, value) => sorted(value));

/** Strings that may appear nowhere in the answer. */
function forbidden(wanted: Json): string[] {
  if (Array.isArray(wanted)) return wanted.flatMap(forbidden);
  if (!isRow(wanted)) return [];
  return [...((wanted.mustNotContain ?? []) as string[]), ...Object.values(wanted).flatMap(forbidden)];
}

it.each(cases.filter(({ call }) => !(call in elsewhere)))("$id: $why", (one) => {
  const adapter = adapters[one.call];
  if (adapter === undefined) throw new Error(`no adapter for ${one.call}`);
  const got = adapter(core, one.input);
  const fits = [one.expect, ...rowsOf(one.alternatives ?? [])].some((wanted) => holds(wanted, got));
  expect(fits, `wanted ${JSON.stringify(one.expect)}\n   got ${JSON.stringify(got)}`).toBe(true);
  const text = JSON.stringify(got);
  for (const word of forbidden(one.expect)) expect(text).not.toContain(word);
});

it("says of every other call what decides it", () => {
  const unknown = cases.filter(({ call }) => !(call in adapters) && !(call in elsewhere));
  expect(unknown.map(({ id, call }) => `${id} ${call}`)).toEqual([]);
});
