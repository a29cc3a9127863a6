/** One container waits for whose it will be, whatever becomes of it meanwhile. */
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ContainerLimits, type Launcher, Launchers } from "../../js/src/engine/launchers.ts";
import { sandboxdPath } from "../../js/src/engine/sandboxd-path.ts";
import { descendants } from "../soak/processes.ts";

const limits: ContainerLimits = {
  memoryBytes: 2 ** 28,
  cpuWeight: 100,
  cpuQuota: 1,
  pids: 256,
  diskBytes: 1e8,
};
const larger = { ...limits, memoryBytes: 2 ** 29 };
const sandboxd = await sandboxdPath();
const waiting = () => descendants(process.pid).filter(({ name }) => name === "sandboxd");
let folder = "";
let open: Launchers[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "launchers-"));
  for (const name of ["run", "scratch"]) mkdirSync(join(folder, name));
});
afterEach(async () => {
  await Promise.all(open.map((launchers) => launchers.close()));
  open = [];
  rmSync(folder, { recursive: true });
});

function launchersOf(binary = sandboxd): Launchers {
  const [runtimeDir, scratchDir] = [join(folder, "run"), join(folder, "scratch")];
  const launchers = new Launchers({ binary, runtimeDir, scratchDir, limits, log: () => undefined });
  open.push(launchers);
  return launchers;
}

/** What stands in the folders of containers. */
const folders = () => ["run", "scratch"].flatMap((name) => readdirSync(join(folder, name)));

async function nextLine({ process }: Launcher): Promise<unknown> {
  const [line] = await once(createInterface({ input: process.stdout }), "line");
  return JSON.parse(line);
}

async function end({ process }: Launcher): Promise<void> {
  process.stdout.resume();
  process.kill("SIGKILL");
  await once(process, "close");
}

test("a container that was prepared is the next to be taken, and the one after it is new", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  launchers.prepare();
  const [prepared, ...others] = waiting();
  expect(others).toEqual([]);
  const [first, second] = [launchers.take(limits), launchers.take(limits)];
  expect(first.process.pid).toBe(prepared?.pid);
  expect(second.process.pid).not.toBe(first.process.pid);
  expect(await Promise.all([first, second].map(nextLine))).toEqual([{ prepared: true }, { prepared: true }]);
  await Promise.all([first, second].map(end));
});

test("one whose second line never comes ends and leaves nothing but its folders", async () => {
  const { process, upperDir } = launchersOf().take(limits);
  process.stdin.end();
  process.stdout.resume();
  const [code] = await once(process, "close");
  expect(code).toBe(1);
  expect(readdirSync(upperDir)).toEqual([]);
});

test("limits of another kind make a new one, and the next is prepared with them", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  const [small] = waiting();
  const taken = launchers.take(larger);
  expect(taken.process.pid).not.toBe(small?.pid);
  launchers.prepare();
  const again = launchers.take(larger);
  expect(again.process.pid).not.toBe(taken.process.pid);
  expect(await nextLine(again)).toEqual({ prepared: true });
  expect(launchers.take(limits).process.pid).not.toBe(small?.pid);
  await Promise.all([taken, again].map(end));
});

test.each(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])(
  "one that got %s while it waited is not taken",
  async (signal) => {
    const launchers = launchersOf();
    launchers.prepare();
    const [prepared] = waiting();
    if (prepared === undefined) throw new Error("no launcher waits");
    process.kill(prepared.pid, signal);
    // Until its parent has heard of it.
    while (existsSync(`/proc/${prepared.pid}`)) await new Promise((resolve) => setImmediate(resolve));
    const taken = launchers.take(limits);
    expect(taken.process.pid).not.toBe(prepared.pid);
    expect(taken.process.exitCode ?? taken.process.signalCode).toBeNull();
    await end(taken);
  },
);

test("one whose first process died while it waited is not taken", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  const inner = () => descendants(process.pid).find(({ name }) => name === "sandboxd-init");
  while (inner() === undefined) await new Promise((resolve) => setImmediate(resolve));
  const [prepared] = waiting();
  process.kill(inner()?.pid ?? 0, "SIGKILL");
  while (existsSync(`/proc/${prepared?.pid}`)) await new Promise((resolve) => setImmediate(resolve));
  const taken = launchers.take(limits);
  expect(taken.process.pid).not.toBe(prepared?.pid);
  await end(taken);
});

test("none outlives a close, and none is prepared after it", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  expect(waiting()).toHaveLength(1);
  await launchers.close();
  expect(folders()).toEqual([]);
  launchers.prepare();
  expect(waiting()).toEqual([]);
});

test("one that has no place for its folders leaves no process", () => {
  const runtimeDir = join(folder, "nowhere");
  const options = { binary: sandboxd, runtimeDir, scratchDir: join(folder, "scratch"), limits };
  const launchers = new Launchers({ ...options, log: () => undefined });
  open.push(launchers);
  launchers.prepare();
  expect(() => launchers.take(limits)).toThrow(/ENOENT/);
  expect(folders()).toEqual([]);
  return expect.poll(waiting).toEqual([]);
});

test("a binary that is not there, or leads nowhere, is told by who takes a launcher", async () => {
  const missing = launchersOf("/nowhere/sandboxd");
  missing.prepare();
  await new Promise((resolve) => setImmediate(resolve));
  const [error] = await once(missing.take(limits).process, "error");
  expect(error).toMatchObject({ code: "ENOENT" });

  const path = join(folder, "sandboxd");
  symlinkSync(path, path);
  const circle = launchersOf(path);
  circle.prepare();
  expect(() => circle.take(limits)).toThrow(/ELOOP/);
});
