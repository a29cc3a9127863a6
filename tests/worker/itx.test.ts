import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx } from "../../js/src/node/itx.ts";
import { callLoosely } from "../support/loosely.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

let worker: TestWorker;
let itx: Itx;
beforeAll(async () => {
  worker = await startTestWorker();
  itx = await worker.itx("prj_itx");
});
afterAll(() => worker[Symbol.asyncDispose]());

test("addressing a sandbox that was never created writes nothing, and every call says so", async () => {
  const sandbox = itx.sandboxes.get("/sandboxes/typo");
  const calls = [
    () => sandbox.exec("true"),
    () => sandbox.start(),
    () => sandbox.destroy(),
    () => sandbox.setEnvVars({ A: "b" }),
    () => sandbox.processor.snapshot(),
    () => sandbox.liveState(),
  ];
  for (const call of calls) {
    await expect(call()).rejects.toMatchObject({ code: "sandbox_not_found", status: 404 });
  }
  expect(await sandbox.events()).toEqual({ events: [], head: 0 });
  expect(await worker.call("CATALOGUE", "prj_itx.iterate/sandboxes", "testTables")).toEqual([]);
  expect(await worker.call("STREAM", "prj_itx.iterate/sandboxes/typo", "testTables")).toEqual([]);
});

test("a create that is refused claims nothing", async () => {
  const refusals: [object, string][] = [
    [{ instanceType: "huge" }, "invalid_argument"],
    [{ instanceTypes: "basic" }, "invalid_argument"],
    [{ sleepAfter: "soon" }, "invalid_sleep_after"],
    [{ sleepAfter: true }, "invalid_argument"],
    [{ keepAlive: "yes" }, "invalid_argument"],
    [{ env: { A: 1 } }, "invalid_argument"],
    [{ env: { "1A": "x" } }, "invalid_env"],
    [{ env: { KEY: `sk-${"a1B2".repeat(12)}` } }, "raw_secret_refused"],
  ];
  for (const [input, code] of refusals) {
    const create = itx.sandboxes.get("/sandboxes/refused").create(input);
    await expect(create, JSON.stringify(input)).rejects.toMatchObject({ code });
  }
  await expect(itx.sandboxes.get("/sandboxes/a/b").create()).rejects.toMatchObject({ code: "invalid_path" });
  expect(await itx.sandboxes.list()).toEqual({ sandboxes: [], cursor: null });
});

test("the system's own streams are read and never written by clients", async () => {
  await expect(callLoosely(itx.streams.get("/egress"), "append", [])).rejects.toMatchObject({
    code: "stream_reserved",
    status: 403,
  });
  expect(await itx.streams.get("/egress").read()).toEqual({ events: [], head: 0 });
  await expect(itx.streams.get("no-slash").read()).rejects.toMatchObject({ code: "invalid_path" });
});

test("a method that does not exist is refused, not answered", async () => {
  const sandbox = itx.sandboxes.get("/sandboxes/x");
  for (const name of ["execWithSession", "onStart", "alarm", "nonsense"]) {
    await expect(callLoosely(sandbox, name)).rejects.toMatchObject({ code: "unknown_method" });
  }
});

test("connections are kept by kind and name", async () => {
  const connection = { kind: "github" as const, name: "acme", secretPath: "/secrets/github/acme" };
  await itx.connections.set(connection);
  await itx.connections.set({ ...connection, name: "beta" });
  await itx.connections.set({ ...connection, secretPath: "/secrets/github/other" });
  expect(await itx.connections.list()).toEqual([
    { ...connection, secretPath: "/secrets/github/other" },
    { ...connection, name: "beta" },
  ]);
  await itx.connections.delete({ kind: "github", name: "acme" });
  expect((await itx.connections.list()).map(({ name }) => name)).toEqual(["beta"]);
  await expect(itx.connections.set({ ...connection, kind: "gitlab" as "github" })).rejects.toMatchObject({
    code: "connection_invalid",
  });
  await expect(itx.connections.set({ ...connection, secretPath: "/sandboxes/x" })).rejects.toMatchObject({
    code: "invalid_path",
  });
});
