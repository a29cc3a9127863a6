/** Random verbs of many clients at once. FULL=1: 200 clients on 20 names for 60 seconds; otherwise 20 on 5 for 6. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../support/server.ts";
import { raceVerbs } from "./racing-verbs.ts";

const full = process.env.FULL === "1";
const size = full
  ? { clients: 200, names: 20, seconds: 60, seed: Number(process.env.SEED ?? 1) }
  : { clients: 20, names: 5, seconds: 6, seed: Number(process.env.SEED ?? 1) };

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.close());

test("the streams' folds equal what the clients were told", { timeout: 600_000 }, async () => {
  const { faults, ...counts } = await raceVerbs(server, size);
  console.log(`size: ${full ? "full" : "CI"} ${JSON.stringify(size)} ${JSON.stringify(counts)}`);
  expect(faults.slice(0, 20)).toEqual([]);
  expect(counts.acknowledged).toBeGreaterThan(0);
});
