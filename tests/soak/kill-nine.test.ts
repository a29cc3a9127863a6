/** The kill -9 test at CI size; `npm run soak` and KILLS=200 are the full sizes. */
import { expect, test } from "vitest";
import { killNine } from "./kill-nine.ts";

test("ten kills at random moments lose nothing that was acknowledged", async () => {
  const outcome = await killNine({ kills: 10, minutes: 4, seed: 20 });
  console.log(`size: CI, ${outcome.kills} kills ${JSON.stringify(outcome.byTarget)}`);
  expect(outcome.losses).toEqual([]);
  expect(outcome.kills).toBe(10);
}, 300_000);
