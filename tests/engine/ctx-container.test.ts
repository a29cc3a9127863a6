/** The contract of `ctx.container`, on real workerd and real sandboxd, without the SDK in between. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { EngineHost } from "../../js/src/engine/host.ts";
import { sandboxdPath } from "../../js/src/engine/sandboxd-path.ts";
import { startWorkerd, type Workerd } from "../../js/src/node/workerd.ts";
import { eventually } from "../support/server.ts";

const secret = "a secret of this test alone";
let folder: string;
let host: EngineHost;
let workerd: Workerd;
let names = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "itx-probe-"));
  const outfile = join(folder, "probe.js");
  await build({
    entryPoints: [new URL("../support/probe-worker.ts", import.meta.url).pathname],
    outfile,
    bundle: true,
    format: "esm",
    platform: "neutral",
    target: "es2023",
    external: ["cloudflare:*"],
    logLevel: "error",
  });
  host = await EngineHost.start({
    sandboxd: await sandboxdPath(),
    runtimeDir: join(folder, "run"),
    scratchDir: join(folder, "scratch"),
    secret,
    limits: () => ({ memoryBytes: 2 ** 30, cpuWeight: 100, cpuQuota: 1, pids: 1024, diskBytes: 4e9 }),
    outbound: { upstreams: {} },
    log: () => undefined,
  });
  workerd = await startWorkerd(
    {
      modules: [{ type: "ESModule", path: outfile }],
      modulesRoot: folder,
      compatibilityDate: "2026-06-01",
      compatibilityFlags: ["nodejs_compat"],
      durableObjects: { PROBE: { className: "Probe", useSQLite: true } },
      durableObjectsPersist: join(folder, "storage"),
      bindings: { ENGINE_SECRET: secret },
      serviceBindings: { ENGINE: { external: { address: `unix:${host.engineSocket}`, http: {} } } },
    },
    { host: "127.0.0.1", port: 0 },
    () => undefined,
  );
  host.connectWorker({ hostname: workerd.url.hostname, port: Number(workerd.url.port) });
});

afterEach(() => host.killAll());
afterAll(async () => {
  await workerd?.close();
  await host?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** One object; what it answers to a step, or the text of its error. */
function probe() {
  const name = `/${++names}`;
  return async (step: object): Promise<unknown> => {
    const response = await fetch(new URL(name, workerd.url), { method: "POST", body: JSON.stringify(step) });
    const answer = (await response.json()) as { value?: unknown; error?: string };
    return answer.error ?? answer.value;
  };
}

function execute(run: (step: object) => Promise<unknown>, command: string): Promise<unknown> {
  return run({
    op: "fetch",
    method: "POST",
    url: "http://localhost:3000/api/execute",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ command, sessionId: "probe" }),
  }).then((answer) => {
    if (typeof answer !== "object" || answer === null || !("text" in answer)) return answer;
    const result: { stdout: string } = JSON.parse(String(answer.text));
    return result.stdout;
  });
}

test("before the first start nothing runs, and every call says so", async () => {
  const run = probe();
  expect(await run({ op: "running" })).toBe(false);
  expect(await run({ op: "monitor" })).toMatch(
    /monitor\(\) cannot be called on a container that is not running/,
  );
  expect(await run({ op: "signal", signal: 15 })).toMatch(/signal\(\) cannot be called/);
  expect(await run({ op: "destroy" })).toBe(false);
  expect(await run({ op: "fetch" })).toMatch(/The container is not running/);
});

test("it runs from the moment of start, and the first fetch waits until the server listens", async () => {
  const run = probe();
  expect(await run({ op: "start" })).toBe(true);
  expect(await run({ op: "start" })).toMatch(
    /start\(\) cannot be called on a container that is already running/,
  );
  expect(await run({ op: "fetch" })).toMatchObject({ status: 200, webSocket: null });
  expect(await execute(run, "echo $GREETING")).toBe("hello\n");
});

test("whether the server listens is asked of it once in each life, and of no other port", async () => {
  const run = probe();
  for (const life of ["first", "second"]) {
    await run({ op: "start" });
    const answers = [await run({ op: "fetch" }), await run({ op: "fetch" })];
    expect(answers, life).toMatchObject([
      { status: 200, text: "sandbox control server\n" },
      { status: 200, text: "" },
    ]);
    expect(await run({ op: "fetch", url: "http://other/" })).toMatchObject({
      text: "sandbox control server\n",
    });
    expect(await run({ op: "fetch", port: 8080 })).toMatch(/container is not listening/);
    await run({ op: "destroy" });
    expect(await run({ op: "fetch" })).toMatch(/The container is not running/);
  }
});

test("a port that nobody listens on gives the runtime's own text", async () => {
  const run = probe();
  await run({ op: "start" });
  expect(await run({ op: "fetch", port: 8099 })).toMatch(/the container is not listening/i);
});

test("signals outside 1 to 64 are range errors", async () => {
  const run = probe();
  await run({ op: "start" });
  for (const signal of [0, 65, -1, 1.5]) expect(await run({ op: "signal", signal })).toMatch(/RangeError/);
});

test("destroy settles when the process is gone, and monitor rejects with the reason", async () => {
  const run = probe();
  await run({ op: "start" });
  await run({ op: "fetch" });
  expect(host.running()).toHaveLength(1);
  expect(await run({ op: "destroy", reason: "no longer needed" })).toBe(false);
  expect(host.running()).toHaveLength(0);
  expect(await run({ op: "monitor" })).toMatch(/no longer needed/);
  expect(await run({ op: "start" })).toBe(true);
  expect(await run({ op: "fetch" })).toMatchObject({ status: 200 });
});

test("a killed container rejects monitor with its exit code, at once and afterwards, and wakes the alarm", async () => {
  const run = probe();
  await run({ op: "start" });
  await run({ op: "fetch" });
  await run({ op: "signal", signal: 9 });
  const text = "Container exited with unexpected exit code: 137";
  await eventually("the end", async () => ((await run({ op: "running" })) === false ? true : undefined));
  expect(await run({ op: "monitors" })).toEqual([`${text} [137]`]);
  expect(await run({ op: "monitor" })).toMatch(text);
  await eventually("the alarm", async () => ((await run({ op: "alarms" })) === 0 ? undefined : true));
});

test("an aborted object finds its live container again, and hears of its end", async () => {
  const run = probe();
  await run({ op: "start" });
  await run({ op: "fetch" });
  await run({ op: "abort" });
  expect(await run({ op: "running" })).toBe(true);
  expect(await run({ op: "fetch" })).toMatchObject({ status: 200 });
  expect(host.running()).toHaveLength(1);
  expect(await run({ op: "destroy" })).toBe(false);
  expect(await run({ op: "monitors" })).toHaveLength(1);
});

test("intercepted requests reach the entrypoint with the props of the first interceptor that matches", async () => {
  const run = probe();
  await run({ op: "intercept" });
  await run({ op: "start" });
  const caught = async (command: string) => JSON.parse(String(await execute(run, command)));
  expect(await caught("curl -s http://first.test/a?b=c")).toEqual({
    url: "http://first.test/a?b=c",
    method: "GET",
    props: { name: "first" },
  });
  expect(await caught("curl -s -X PUT http://other.test/")).toMatchObject({
    method: "PUT",
    props: { name: "all" },
  });
  expect(await caught("curl -s https://first.test/")).toMatchObject({
    url: "https://first.test/",
    props: { name: "tls" },
  });
});

test("a caller without the boot's secret is not let into the host's paths", async () => {
  const response = await fetch(new URL("/__engine/exited", workerd.url), { method: "POST", body: "{}" });
  expect(response.status).toBe(404);
});
