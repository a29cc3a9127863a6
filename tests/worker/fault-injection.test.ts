/**
 * One life of a sandbox (create, use, sleep, wake, restart, destroy), played once to list every point between two durable steps, and
 * then once for each of them with the object ended right there. The caller does what a caller does: it asks again. Whatever the
 * point, the life must add up. A sample of the points by default; FULL=1 takes all, FROM=n goes on from one of them.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx } from "../../js/src/node/index.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { buildTestWorker } from "./support/test-worker.ts";

const project = "prj_faults";
const SAMPLE = 24;
const EXPECTED_POINTS = 100;

let server: TestServer;
let itx: Itx;

beforeAll(async () => {
  server = await startTestServer({ workerDir: await buildTestWorker("tests/worker/fault-entry.ts") });
  itx = await server.itx(project);
});

afterAll(() => server.close());

async function arm(at: number | null): Promise<void> {
  await fetch(`${server.url}/faults${at === null ? "" : `?at=${at}`}`, { method: "POST" });
}

async function points(): Promise<{ seen: string[]; armed: boolean }> {
  return (await fetch(`${server.url}/faults`)).json();
}

/** What the fault may cost a caller: one failed call, and the same call again. */
async function insist<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (attempt >= 4) throw error;
    }
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

/** A create whose answer was lost has succeeded if the name is there when it is asked again. */
async function create(path: string): Promise<void> {
  let lost = false;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await itx.sandboxes.get(path).create({ instanceType: "lite", env: { LIFE: path } });
      return;
    } catch (error) {
      if (lost && codeOf(error) === "sandbox_exists") return;
      if (attempt >= 4) throw error;
      lost = true;
    }
  }
}

async function output(path: string, command: string): Promise<string> {
  const result = await insist(() => itx.sandboxes.get(path).exec(command));
  return String(result.stdout);
}

async function live(path: string): Promise<void> {
  const sandbox = () => itx.sandboxes.get(path);
  await create(path);
  expect(await output(path, "echo first > /workspace/file; echo $LIFE")).toBe(`${path}\n`);
  await insist(() => sandbox().sleep());
  await insist(() => sandbox().start());
  expect(await output(path, "cat /workspace/file; echo second > /workspace/file")).toMatch(
    /^(first|second)\n$/,
  );
  await insist(() => sandbox().setEnvVars({ LIFE: null, LATER: "2" }));
  expect(await output(path, "echo $LIFE$LATER")).toBe("2\n");
  await insist(() => sandbox().restart());
  expect(await output(path, "cat /workspace/file")).toBe("second\n");
  await insist(() => sandbox().destroy());
}

async function check(path: string): Promise<void> {
  const { events } = await itx.streams.get(path).read({ limit: 1000 });
  const names = events.map(({ type }) => String(type).split("/").at(-1) ?? "");
  expect(names.filter((name) => name === "created")).toHaveLength(1);
  expect(names.filter((name) => name === "destroyed")).toHaveLength(1);
  expect(names.at(-1)).toBe("destroyed");
  let running = false;
  for (const name of names) {
    if (name === "started") expect(running, names.join(" ")).toBe(false);
    if (name === "stopped") expect(running, names.join(" ")).toBe(true);
    if (name === "started") running = true;
    if (name === "stopped" || name === "destroyed") running = false;
  }
  expect(names.filter((name) => name === "started").length).toBe(
    names.filter((name) => name === "stopped").length,
  );
  const projection = await itx.sandboxes.get(path).processor.snapshot();
  expect(projection).toMatchObject({ status: "destroyed", running: false, offset: events.at(-1)?.offset });
  const listed = (await itx.sandboxes.list({ status: "destroyed", limit: 1000 })).sandboxes;
  expect(listed.map((row) => row.path)).toContain(path);
}

test("a sandbox's life adds up wherever its object ends", { timeout: 3_600_000 }, async () => {
  await arm(null);
  await live("/sandboxes/recorded");
  await check("/sandboxes/recorded");
  const { seen } = await points();
  const distinct = new Set(seen);
  const full = process.env.FULL === "1";
  console.log(`points: ${seen.length}`);
  const step = full ? 1 : Math.max(1, Math.ceil(seen.length / SAMPLE));
  let played = 0;
  for (let at = Number(process.env.FROM ?? 1); at <= seen.length; at += step) {
    const path = `/sandboxes/point-${at}`;
    await arm(at);
    try {
      await live(path);
      await check(path);
    } catch (error) {
      throw new Error(`the life ended at point ${at} (${seen[at - 1]}) does not add up`, { cause: error });
    }
    expect((await points()).armed, `point ${at} was passed`).toBe(false);
    played += 1;
  }
  console.log(`fault points: ${seen.length} in one life, ${distinct.size} names, ${played} played`);
  expect(seen.length).toBeGreaterThan(EXPECTED_POINTS);
});
