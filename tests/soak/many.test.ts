/** Many sandboxes, a snapshot of many files and a large file at CI size; `npm run soak:many` is the full one. */
import { expect, test } from "vitest";
import { many, sizes } from "./many.ts";

test("many sandboxes start alike and idle small; many files and a large one pass whole", async () => {
  const outcome = await many(sizes.ci);
  console.log(`size: CI, ${JSON.stringify(outcome)}`);
  expect(outcome.answering).toBe(sizes.ci.sandboxes);
  expect(outcome.idleMb).toBeLessThan(10);
  // The machine does other things too: the full run on a quiet one holds 1.3.
  expect(outcome.startRatio).toBeLessThan(2);
  expect(outcome.filesKept).toBe(sizes.ci.files);
  expect(outcome.digestKept).toBe(true);
}, 300_000);
