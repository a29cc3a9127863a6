import { expect, test } from "vitest";
import { Audit, type AuditEntry, DECIDED, SUMMARY } from "../../js/src/worker/project/audit.ts";
import type { EventInput } from "../../js/src/worker/stream/types.ts";

const entry: AuditEntry = {
  method: "GET",
  scheme: "https",
  host: "a.example",
  port: 443,
  path: "/",
  decision: "forward",
};

test("a use of a secret is written at once, the rest in one batch within a second", async () => {
  const batches: EventInput[][] = [];
  const audit = new Audit(async (events) => batches.push(events));
  await audit.recordNow({ ...entry, secretPath: "/secrets/x" });
  expect(batches).toHaveLength(1);
  const started = Date.now();
  await Promise.all([audit.record(entry), audit.record(entry)]);
  expect(Date.now() - started).toBeLessThan(1_000);
  expect(batches.map((batch) => batch.length)).toEqual([1, 2]);
});

test("a flood is counted where it is not listed", async () => {
  const events: EventInput[] = [];
  const audit = new Audit(async (batch) => events.push(...batch));
  const recorded: Promise<void>[] = [];
  for (let index = 0; index < 1_000; index += 1) {
    recorded.push(audit.record({ ...entry, decision: index % 4 === 0 ? "deny" : "forward" }));
  }
  await Promise.all(recorded);
  const listed = events.filter(({ type }) => type === DECIDED).length;
  const summary = events.find(({ type }) => type === SUMMARY);
  expect(listed).toBeGreaterThan(0);
  expect(summary).toBeDefined();
  expect(JSON.stringify(summary?.payload)).toContain("deny");
});
