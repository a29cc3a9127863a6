/**
 * Events that are on streams somewhere, for ever. A change that folds them to another state breaks existing sandboxes: it
 * needs a new event type, not a new meaning. The file is never edited, only joined by a v2.
 */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { loadCore } from "../../js/src/core/index.ts";
import type { ProjectionState, SandboxEvent } from "../../js/src/core/types.ts";

interface History {
  events: (SandboxEvent & { offset: number })[];
  state: ProjectionState;
}

const core = await loadCore();
const history: History = JSON.parse(
  readFileSync(new URL("../vectors/history/v1.json", import.meta.url).pathname, "utf8"),
);

it("has an event of every type there is", () => {
  const types = new Set(history.events.map(({ type }) => type));
  expect(
    core
      .eventCatalogue()
      .map(({ type }) => type)
      .filter((type) => !types.has(type)),
  ).toEqual([]);
});

it("holds only events that are valid today", () => {
  for (const { type, payload } of history.events)
    expect(core.validateEvent({ type, payload })).toEqual({ type, payload });
});

it("folds to the state of then", () => {
  expect(core.foldProjection(history.events)).toEqual(history.state);
});
