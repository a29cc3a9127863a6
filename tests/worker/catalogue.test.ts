import { afterAll, beforeAll, expect, test } from "vitest";
import type { Listing, Lookup } from "../../js/src/worker/stream/catalogue-durable-object.ts";
import type { StoredEvent } from "../../js/src/worker/stream/types.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

let worker: TestWorker;
beforeAll(async () => {
  worker = await startTestWorker();
});
afterAll(() => worker[Symbol.asyncDispose]());

const call = <T>(project: string, method: string, ...values: unknown[]) =>
  worker.call<T>("CATALOGUE", `${project}.iterate/sandboxes`, method, ...values);
const claim = (project: string, name: string, instanceType = "basic") =>
  call<{ event: StoredEvent; created: boolean }>(project, "claim", {
    path: `/sandboxes/${name}`,
    input: { instanceType },
  });
const type = (name: string) => `events.iterate.com/sandbox/${name}`;

test("racing claims of one path give everybody the same event", async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => claim("prj_race", "main")));
  expect(answers.filter(({ created }) => created)).toHaveLength(1);
  expect(new Set(answers.map(({ event }) => event.offset)).size).toBe(1);
});

test("a path that was never claimed is looked up without a trace", async () => {
  expect(await call("prj_empty", "lookup", "/sandboxes/typo")).toBeNull();
  expect(await call("prj_empty", "list")).toEqual({ sandboxes: [], cursor: null });
  await call("prj_empty", "completion", { path: "/sandboxes/typo", type: type("started"), offset: 1 });
  expect(await call("prj_empty", "testTables")).toEqual([]);
});

test("completions move the status, late ones and those after the end change nothing", async () => {
  await claim("prj_status", "main", "lite");
  const status = async () => (await call<Lookup>("prj_status", "lookup", "/sandboxes/main")).status;
  const complete = (name: string, offset: number) =>
    call("prj_status", "completion", { path: "/sandboxes/main", type: type(name), offset });
  expect(await status()).toBe("claimed");
  await complete("created", 1);
  await complete("started", 4);
  await complete("stopped", 2);
  expect(await status()).toBe("running");
  await complete("workspace-restored", 5);
  expect(await status()).toBe("running");
  await complete("stopped", 6);
  expect(await status()).toBe("stopped");
  await complete("destroyed", 8);
  await complete("started", 9);
  expect(await status()).toBe("destroyed");
});

test("the list is paged in order of paths and filtered by type and status", async () => {
  for (let index = 0; index < 25; index += 1) {
    await claim("prj_list", `s${String(index).padStart(2, "0")}`, index % 2 === 0 ? "lite" : "basic");
  }
  await call("prj_list", "completion", { path: "/sandboxes/s04", type: type("started"), offset: 3 });
  const paths: string[] = [];
  let cursor: string | null | undefined;
  do {
    const page: Listing = await call("prj_list", "list", { limit: 10, ...(cursor ? { cursor } : {}) });
    paths.push(...page.sandboxes.map(({ path }) => path));
    cursor = page.cursor;
  } while (cursor !== null);
  expect(paths).toEqual(
    Array.from({ length: 25 }, (_, index) => `/sandboxes/s${String(index).padStart(2, "0")}`),
  );
  const lite: Listing = await call("prj_list", "list", { instanceType: "lite" });
  expect(lite.sandboxes).toHaveLength(13);
  const running: Listing = await call("prj_list", "list", { status: "running", instanceType: "lite" });
  expect(running.sandboxes.map(({ path, status }) => [path, status])).toEqual([
    ["/sandboxes/s04", "running"],
  ]);
  expect(await call("prj_list", "list", { status: "running", instanceType: "basic" })).toEqual({
    sandboxes: [],
    cursor: null,
  });
});

test("wrong arguments are told by name", async () => {
  for (const options of [{ limit: 0 }, { status: "asleep" }, { instanceType: "huge" }, { cursor: 7 }]) {
    await expect(call("prj_list", "list", options)).rejects.toMatchObject({
      code: "invalid_argument",
      status: 400,
    });
  }
});

test("a claim that the core refuses writes nothing", async () => {
  const bad = { path: "/sandboxes/a/b", input: { instanceType: "basic" } };
  await expect(call("prj_bad", "claim", bad)).rejects.toMatchObject({ code: "invalid_path" });
  const huge = { path: "/sandboxes/a", input: { instanceType: "huge" } };
  await expect(call("prj_bad", "claim", huge)).rejects.toMatchObject({ code: "invalid_event" });
  expect(await call("prj_bad", "testTables")).toEqual([]);
});
