import { expect, it } from "vitest";
import { isSandboxError } from "../../js/src/core/error.ts";
import { loadCore } from "../../js/src/core/index.ts";
import type { FoldableEvent } from "../../js/src/core/types.ts";
import { random } from "./random.ts";

const core = await loadCore();

it("names parse back to what made them, for every accepted input", () => {
  const { pick, integer } = random(1);
  const alphabet = [..."abcXYZ019_-.~%2eE/?#\\ @:!$&'()*+,;=\u0000\u007fäß😀"];
  const text = (most: number) => Array.from({ length: integer(most) }, () => pick(alphabet)).join("");
  let accepted = 0;
  const seen = new Map<string, string>();
  for (let i = 0; i < 5000; i++) {
    const projectId = pick(["prj_1", "a", "p-2", text(4)]);
    const path = pick(["/", "/sandboxes/", "/secrets/", "/a/"]) + text(6);
    let name: string;
    try {
      name = core.durableObjectName({ projectId, path });
    } catch (error) {
      expect(isSandboxError(error)).toBe(true);
      continue;
    }
    accepted++;
    expect(core.parseDurableObjectName(name)).toEqual({ projectId, path });
    // What a URL parser would make of the path is the path: no route can reach it by another spelling.
    expect(new URL(`https://host${path}`).pathname).toBe(path);
    const identity = JSON.stringify([projectId, path]);
    expect(seen.get(name) ?? identity).toBe(identity);
    seen.set(name, identity);
  }
  expect(accepted).toBeGreaterThan(250);
});

it("folds to one state in any split, order within a batch, and by bytes or values", () => {
  const { integer, pick, shuffle } = random(2);
  const types = [
    "created",
    "started",
    "stopped",
    "destroyed",
    "backup-created",
    "configured",
    "start-requested",
    "x",
  ];
  for (let round = 0; round < 300; round++) {
    const events: FoldableEvent[] = Array.from({ length: 1 + integer(25) }, (_, i) => ({
      offset: i + 1,
      // Destroyed is rare, or nothing would be folded after the first few.
      type: `events.iterate.com/sandbox/${pick(integer(10) === 0 ? ["destroyed"] : types.filter((t) => t !== "destroyed"))}`,
      payload: pick<unknown>([
        {},
        { config: { instanceType: "basic" } },
        { backupId: `b-${i}` },
        { env: { A: String(i), B: null }, keepAlive: i % 2 === 0 },
        { env: { B: "x" }, sleepAfter: i + 0.5 },
        null,
        [1],
      ]),
    }));
    const whole = core.foldProjection(events);
    const bytes = new TextEncoder().encode(JSON.stringify(events));
    expect(core.foldProjection(bytes)).toEqual(whole);
    using projection = core.createProjection();
    let state = core.foldProjection([]);
    let start = 0;
    while (start < events.length) {
      const end = start + 1 + integer(5);
      const batch = shuffle(events.slice(start, end));
      // A batch that overlaps what was folded changes nothing.
      const overlapping = [...events.slice(Math.max(0, start - 2), start), ...batch];
      state = core.foldProjection(overlapping, state);
      projection.apply(overlapping);
      start = end;
    }
    expect(state).toEqual(whole);
    expect(projection.state()).toEqual(whole);
  }
});
