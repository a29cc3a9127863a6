import { expect, it } from "vitest";
import { loadCore } from "../../js/src/core/index.ts";
import { readVectors, vectorFiles } from "./files.ts";
import { failuresOf } from "./vectors.ts";

const core = await loadCore();

it.each(vectorFiles)("Node answers every vector of %s", (name) => {
  const vectors = readVectors(name);
  expect(vectors.length).toBeGreaterThan(0);
  expect(failuresOf(core, vectors)).toEqual([]);
});
