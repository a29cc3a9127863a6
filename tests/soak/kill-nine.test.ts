/** The kill -9 test at CI size; `npm run soak` and KILLS=200 are the full sizes, SIZE=smoke is one kill. */
import { expect, test } from "vitest";
import { sized, smoke } from "../support/size.ts";
import { killNine } from "./kill-nine.ts";

const kills = sized(10, 1);

test("kills at random moments lose nothing that was acknowledged", async () => {
  const outcome = await killNine({ kills, minutes: 4, seed: 20 });
  console.log(`size: ${smoke ? "smoke" : "CI"}, ${outcome.kills} kills ${JSON.stringify(outcome.byTarget)}`);
  expect(outcome.losses).toEqual([]);
  expect(outcome.kills).toBe(kills);
}, 300_000);
