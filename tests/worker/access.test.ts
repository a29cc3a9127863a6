import { newHttpBatchRpcSession } from "capnweb";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx } from "../../js/src/node/itx.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker({ vars: { ENGINE_SECRET: "boot-secret" } });
});
afterAll(() => worker[Symbol.asyncDispose]());

/** A stub is a function with anything as its property; what is behind it answers for the rest. */
const isItx = (value: unknown): value is Itx => typeof value === "function";

const get = (path: string, token?: string, headers: Record<string, string> = {}) =>
  fetch(new URL(path, worker.url), {
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
  });

test("no endpoint answers without a token, and all say the same", async () => {
  const bodies = new Set<string>();
  for (const path of ["/", "/rpc", "/health", "/metrics", "/terminal", "/no/such/page", "/__engine/egress"]) {
    for (const token of [undefined, "nonsense"]) {
      const response = await get(path, token);
      expect([path, response.status]).toEqual([path, 401]);
      bodies.add(await response.text());
    }
  }
  expect(bodies.size).toBe(1);
  const post = await fetch(new URL("/rpc", worker.url), { method: "POST", body: "[]" });
  expect(post.status).toBe(401);
});

test("each endpoint answers those it is for", async () => {
  const project = await worker.token("prj_a");
  const operator = await worker.operatorToken();
  expect((await get("/health", project)).status).toBe(200);
  expect((await get("/health", "boot-secret")).status).toBe(200);
  expect((await get("/metrics", project)).status).toBe(401);
  const metrics = await get("/metrics", operator);
  expect(metrics.status).toBe(200);
  expect(await metrics.text()).toContain("# TYPE sandboxes_events_appended_total counter");
  expect((await get("/no/such/page", project)).status).toBe(404);
});

test("a project's token reaches no other project by any spelling", async () => {
  const token = await worker.token("prj_a");
  for (const other of ["prj_b", "PRJ_A", "prj_a%20", "prj_a.", "prj_a.iterate", "", "..", "prj_a/../prj_b"]) {
    expect((await get(`/rpc?project=${other}`, token)).status).toBe(401);
    if (other !== "") expect((await get("/rpc", token, { "x-itx-project": other })).status).toBe(401);
  }
});

test("an operator acts for the project that is named, and for none without one", async () => {
  const token = await worker.operatorToken();
  const batch = (query: string) =>
    fetch(new URL(`/rpc${query}`, worker.url), {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: "",
    });
  expect((await batch("?project=prj_b")).status).toBe(200);
  expect((await batch("")).status).toBe(401);
  expect((await batch("?project=PRJ_B")).status).toBe(401);
});

test("a token stops working when it expires", async () => {
  const token = await worker.token("prj_a", 1);
  expect((await get("/health", token)).status).toBe(200);
  await expect.poll(async () => (await get("/health", token)).status, { timeout: 5_000 }).toBe(401);
});

test("an HTTP batch carries calls and errors with their codes", async () => {
  const itx: unknown = newHttpBatchRpcSession(
    new Request(new URL("/rpc", worker.url), {
      headers: { authorization: `Bearer ${await worker.token("prj_a")}` },
    }),
  );
  if (!isItx(itx)) throw new TypeError("capnweb gave no session");
  const [listing, refusal] = await Promise.allSettled([
    itx.sandboxes.list(),
    itx.sandboxes.list({ limit: -1 }),
  ]);
  expect(listing).toMatchObject({ status: "fulfilled", value: { sandboxes: [], cursor: null } });
  expect(refusal).toMatchObject({ status: "rejected", reason: { code: "invalid_argument", status: 400 } });
});
