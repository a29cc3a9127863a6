/** Objects that were never created: whatever is asked of them is refused, and they keep nothing. */
import { Response } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import { guardKind } from "../../js/src/worker/sandbox/guard.ts";
import { lifecycleMethods, sdkMethods } from "../../js/src/worker/sandbox/surface.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

const binding = "SANDBOX_BASIC";
const raw = "prj_1.iterate/sandboxes/never";

let worker: TestWorker;
let engineCalls = 0;

beforeAll(async () => {
  worker = await startTestWorker({
    engine: () => {
      engineCalls += 1;
      return new Response("there are no containers here", { status: 500 });
    },
  });
});

afterAll(() => worker[Symbol.asyncDispose]());

/** The runtime answers these itself, and never by the object's own method. */
const platformNames = ["fetch", "alarm", "dup"];
const harmless = ["create", "prepare", "testTables", "testKeys", "testFetch", "testMethods"];

test("every method of the SDK and of ours is refused, and nothing is written", async () => {
  const methods = await worker.call<string[]>(binding, raw, "testMethods");
  expect(methods).toEqual(expect.arrayContaining([...lifecycleMethods, ...sdkMethods]));
  expect(methods.length).toBeGreaterThan(150);
  for (const method of methods.filter((name) => ![...platformNames, ...harmless].includes(name))) {
    const refusal = worker.call(binding, raw, method, {}, {}, {});
    await expect(refusal, method).rejects.toMatchObject({ code: "sandbox_not_found" });
  }
  expect(await worker.call(binding, raw, "testTables")).toEqual([]);
  expect(await worker.call(binding, raw, "testKeys")).toEqual([]);
  expect(engineCalls).toBe(0);
});

test("one that was made ready keeps nothing once it is asked for anything", async () => {
  const name = "prj_1.iterate/sandboxes/ready";
  await worker.call(binding, name, "prepare");
  expect(await worker.call(binding, name, "testTables")).not.toEqual([]);
  await expect(worker.call(binding, name, "exec", "true")).rejects.toMatchObject({
    code: "sandbox_not_found",
  });
  expect(await worker.call(binding, name, "testTables")).toEqual([]);
});

test("a create that meets a claim of another type leaves no object of its own", async () => {
  const path = "/sandboxes/taken";
  const itx = await worker.itx("prj_1");
  await itx.sandboxes.get(path).create({ instanceType: "lite" });
  const create = itx.sandboxes.get(path).create({ instanceType: "basic" });
  await expect(create).rejects.toMatchObject({ code: "sandbox_exists" });
  expect(await worker.call(binding, `prj_1.iterate${path}`, "testTables")).toEqual([]);
});

test("a request to one is refused too", async () => {
  await expect(worker.call(binding, raw, "testFetch", "http://localhost/ws/pty")).rejects.toMatchObject({
    code: "sandbox_not_found",
  });
});

test("methods are guarded unless they are named, also those that a later SDK adds", () => {
  expect(guardKind("somethingNew", true)).toBe("provisioned");
  expect(guardKind("exec", true)).toBe("provisioned");
  expect(guardKind("getState", true)).toBe("live");
  expect(guardKind("renewActivityTimeout", false)).toBe("born");
});

test("a sandbox is created once, described, and destroyed for good", async () => {
  const name = "prj_1.iterate/sandboxes/made";
  const identity = { projectId: "prj_1", path: "/sandboxes/made" };
  const input = { instanceType: "basic", env: { A: "1" } };
  const { event } = await worker.call<{ event: object }>("CATALOGUE", "prj_1.iterate/sandboxes", "claim", {
    path: identity.path,
    input,
  });
  await worker.call(binding, name, "create", { ...identity, input, claim: event });
  await expect(
    worker.call(binding, name, "create", { ...identity, input, claim: event }),
  ).rejects.toMatchObject({ code: "sandbox_exists" });
  expect(await worker.call(binding, name, "projectionSnapshot")).toMatchObject({
    status: "created",
    instanceType: "basic",
    env: { A: "1" },
    offset: 2,
  });
  expect(await worker.call(binding, name, "__describe")).toMatchObject({ ...identity, life: "live" });
  await expect(
    worker.call(binding, name, "assertCreated", { ...identity, path: "/sandboxes/Made" }),
  ).rejects.toMatchObject({ code: "identity_mismatch" });
  await expect(worker.call(binding, name, "exposePort", 8080, {})).rejects.toMatchObject({
    code: "method_fenced",
  });
  await worker.call(binding, name, "setKeepAlive", true);
  await worker.call(binding, name, "setEnvVars", { A: null, B: "2" });
  await expect(worker.call(binding, name, "setSleepAfter", "soon")).rejects.toMatchObject({
    code: "invalid_sleep_after",
  });
  await worker.call(binding, name, "destroy");
  await worker.call(binding, name, "destroy");
  await expect(worker.call(binding, name, "exec", "true")).rejects.toMatchObject({
    code: "sandbox_destroyed",
  });
  const { events } = await worker.call<{ events: { type: string }[] }>("STREAM", name, "read", {});
  expect(events.map(({ type }) => type.split("/").at(-1))).toEqual([
    "created",
    "configured",
    "configured",
    "configured",
    "destroy-requested",
    "destroyed",
  ]);
  expect(await worker.call("CATALOGUE", "prj_1.iterate/sandboxes", "lookup", identity.path)).toMatchObject({
    status: "destroyed",
  });
});
