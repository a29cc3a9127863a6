/** Racing creates: one winner a name. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.close());

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => "created",
    (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : String(error)),
  );

test("ten racing creates of one name: one succeeds, nine are told why not", async () => {
  const itx = await server.itx("prj_race");
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, () =>
      outcome(itx.sandboxes.get("/sandboxes/one").create({ instanceType: "lite" })),
    ),
  );
  expect(outcomes.filter((o) => o === "created")).toHaveLength(1);
  expect(new Set(outcomes.filter((o) => o !== "created"))).toEqual(
    new Set(outcomes.filter((o) => o === "sandbox_exists" || o === "creation_in_progress")),
  );
});

test("a thousand racing creates of a hundred names: one winner each", async () => {
  const clients = await Promise.all(Array.from({ length: 10 }, () => server.itx("prj_races")));
  const winners = new Map<string, number>();
  const others = new Set<string>();
  await Promise.all(
    clients.flatMap((itx) =>
      Array.from({ length: 100 }, async (_, number) => {
        const path = `/sandboxes/name-${number}`;
        const result = await outcome(itx.sandboxes.get(path).create({ instanceType: "basic" }));
        if (result === "created") winners.set(path, (winners.get(path) ?? 0) + 1);
        else others.add(result);
      }),
    ),
  );
  expect(winners.size).toBe(100);
  expect([...winners.values()].every((count) => count === 1)).toBe(true);
  expect([...others].every((code) => code === "sandbox_exists" || code === "creation_in_progress")).toBe(
    true,
  );
});
