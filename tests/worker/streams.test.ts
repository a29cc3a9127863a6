import { afterAll, beforeAll, expect, test } from "vitest";
import type { EventInput, EventPage, StoredEvent } from "../../js/src/worker/stream/types.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
afterAll(() => worker[Symbol.asyncDispose]());

const child = (path: string): EventInput => ({
  type: "events.iterate.com/stream/child-created",
  payload: { path },
});
const append = (path: string, ...events: EventInput[]) =>
  worker.call<StoredEvent[]>("STREAM", `prj_a.iterate${path}`, "append", events);
const read = (path: string, options?: object) =>
  worker.call<EventPage>("STREAM", `prj_a.iterate${path}`, "read", options);
const tables = (path: string) => worker.call<string[]>("STREAM", `prj_a.iterate${path}`, "testTables");

test("reading what does not exist gives nothing and writes nothing", async () => {
  expect(await read("/nothing")).toEqual({ events: [], head: 0 });
  await expect(worker.call("STREAM", "prj_a.iterate/nothing", "waitFor", 1, 20)).rejects.toMatchObject({
    code: "wait_timeout",
    status: 408,
  });
  expect(await tables("/nothing")).toEqual([]);
});

test("a batch is written whole or not at all", async () => {
  const refusals: [EventInput[], string][] = [
    [[child("/x"), { type: "events.iterate.com/sandbox/nonsense", payload: {} }], "unknown_event_type"],
    [[child("/x"), { ...child("/x"), payload: { path: "/x", extra: 1 } }], "invalid_event"],
    [[child("/x"), { ...child("/x"), idempotencyKey: "" }], "invalid_argument"],
    [[], "invalid_argument"],
  ];
  for (const [events, code] of refusals) {
    await expect(append("/batch", ...events)).rejects.toMatchObject({ code });
  }
  expect(await tables("/batch")).toEqual([]);
  expect((await append("/batch", child("/x"), child("/y"))).map(({ offset }) => offset)).toEqual([1, 2]);
});

test("an event and a batch have a size limit, with nothing half written", async () => {
  const failed = (bytes: number): EventInput => ({
    type: "events.iterate.com/sandbox/backup-failed",
    payload: { error: "e".repeat(bytes) },
  });
  await expect(append("/large", failed(128 * 1024))).rejects.toMatchObject({ code: "event_too_large" });
  const batch = Array.from({ length: 9 }, () => failed(120 * 1024));
  await expect(append("/large", ...batch)).rejects.toMatchObject({ code: "batch_too_large", status: 413 });
  expect(await tables("/large")).toEqual([]);
  expect(await append("/large", ...batch.slice(0, 8))).toHaveLength(8);
});

test("a key is taken once, also within a batch and by racing callers", async () => {
  const keyed = { ...child("/k"), idempotencyKey: "only" };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => append("/keys", keyed, child("/k"), keyed)),
  );
  const events = answers.flat();
  const offsets = new Set(
    events.filter(({ idempotencyKey }) => idempotencyKey === "only").map(({ offset }) => offset),
  );
  expect([...offsets]).toEqual([1]);
  const { events: stored, head } = await read("/keys", { limit: 100 });
  expect(stored.map(({ offset }) => offset)).toEqual(Array.from({ length: 21 }, (_, index) => index + 1));
  expect(head).toBe(21);
});

test("pages follow one another by offset", async () => {
  await append("/pages", ...Array.from({ length: 25 }, (_, index) => child(`/p${index}`)));
  const seen: number[] = [];
  let after = 0;
  for (;;) {
    const { events, head } = await read("/pages", { after, limit: 10 });
    seen.push(...events.map(({ offset }) => offset));
    after = events.at(-1)?.offset ?? head;
    if (after === head) break;
  }
  expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => index + 1));
  for (const options of [{ limit: 0 }, { limit: 1.5 }, { limit: 1001 }, { after: -1 }, { after: "1" }]) {
    await expect(read("/pages", options)).rejects.toMatchObject({ code: "invalid_argument" });
  }
});

test("a new stream is announced to every ancestor, once each", async () => {
  await append("/one/two/three", child("/x"));
  await append("/one/two/four", child("/x"));
  await append("/one/two/three", child("/y"));
  const children = async (path: string, count: number): Promise<string[]> => {
    const { events, head } = await read(path, { limit: 1000 });
    const found = events.map(({ payload }) => String(payload.path)).filter((each) => each.startsWith("/one"));
    if (found.length >= count) return found.sort();
    await worker.call("STREAM", `prj_a.iterate${path}`, "waitFor", head + 1);
    return children(path, count);
  };
  expect(await children("/one/two", 2)).toEqual(["/one/two/four", "/one/two/three"]);
  expect(await children("/one", 3)).toEqual(["/one/two", "/one/two/four", "/one/two/three"]);
  expect(await children("/", 4)).toEqual(["/one", "/one/two", "/one/two/four", "/one/two/three"]);
});

test("waiting ends as soon as the event is there", async () => {
  const waiting = worker.call<StoredEvent>("STREAM", "prj_a.iterate/wait", "waitFor", 2, 10_000);
  await append("/wait", child("/a"));
  await append("/wait", child("/b"));
  expect((await waiting).payload).toEqual({ path: "/b" });
});

test("a tail replays and follows without gap or repeat, whatever happens to the object", async () => {
  const itx = await worker.itx("prj_a");
  const total = 120;
  const seen: number[] = [];
  const following = (async () => {
    while ((seen.at(-1) ?? 0) < total) {
      const reader = (await itx.streams.get("/tail").tail({ after: seen.at(-1) ?? 0 })).getReader();
      try {
        while ((seen.at(-1) ?? 0) < total) {
          const { done, value } = await reader.read();
          if (done) break;
          seen.push(value.offset);
        }
      } catch {
        // The object ended under the stream; the next one goes on from the last offset.
      } finally {
        await reader.cancel().catch(() => undefined);
      }
    }
  })();
  for (let index = 1; index <= total; index += 1) {
    if (index % 30 === 0)
      await worker.call("STREAM", "prj_a.iterate/tail", "testAbort").catch(() => undefined);
    await appendUntilAcknowledged({ ...child("/t"), idempotencyKey: `t${index}` });
  }
  await following;
  expect(seen).toEqual(Array.from({ length: total }, (_, index) => index + 1));
});

async function appendUntilAcknowledged(event: EventInput): Promise<void> {
  for (;;) {
    try {
      await append("/tail", event);
      return;
    } catch {
      // An aborted object loses the call, never what it acknowledged.
    }
  }
}

test("a stream's object that nobody named refuses", async () => {
  await expect(worker.call("STREAM", "nonsense", "append", [child("/x")])).rejects.toMatchObject({
    code: "invalid_name",
  });
});
