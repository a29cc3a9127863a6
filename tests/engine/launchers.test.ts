/** One container waits for whose it will be, whatever becomes of it meanwhile. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
/** Launchers. A spawner has their name too until it takes its own. */
function waiting() {
  const all = descendants(process.pid);
  const spawners = new Set(all.filter(({ name }) => name === "sandboxd-spawn").map(({ pid }) => pid));
  return all.filter(({ name, parent }) => name === "sandboxd" && spawners.has(parent));
}
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

/** The process of the launcher that waits, as soon as it does. */
async function prepared(): Promise<number> {
  for (;;) {
    const [launcher] = waiting();
    if (launcher !== undefined) return launcher.pid;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** What stands in the folders of containers. */
const folders = () =>
  ["run", "scratch"].flatMap((name) =>
    readdirSync(join(folder, name), { withFileTypes: true }).filter((each) => each.isDirectory()),
  );

async function nextLine({ process }: Launcher): Promise<unknown> {
  const line = await new Promise<string>((resolve) => process.onLine(resolve));
  return JSON.parse(line);
}

async function end({ process }: Launcher): Promise<void> {
  process.kill("SIGKILL");
  await process.closed;
}

test("a container that was prepared is the next to be taken, and the one after it is new", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  launchers.prepare();
  const pid = await prepared();
  const [first, second] = [launchers.take(limits), launchers.take(limits)];
  expect(await Promise.all([first, second].map(nextLine))).toEqual([{ prepared: true }, { prepared: true }]);
  expect(first.process.pid).toBe(pid);
  expect(waiting().map((each) => each.pid)).toEqual([pid, second.process.pid]);
  await Promise.all([first, second].map(end));
});

test("one whose second line never comes ends and leaves nothing but its folders", async () => {
  const { process, upperDir } = launchersOf().take(limits);
  process.endInput();
  expect(await process.closed).toMatchObject({ code: 1 });
  expect(readdirSync(upperDir)).toEqual([]);
});

test("limits of another kind make a new one, and the next is prepared with them", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  const small = await prepared();
  const taken = launchers.take(larger);
  launchers.prepare();
  const again = launchers.take(larger);
  const other = launchers.take(limits);
  expect(await Promise.all([taken, again, other].map(nextLine))).toEqual(Array(3).fill({ prepared: true }));
  const pids = [small, ...[taken, again, other].map(({ process }) => process.pid)];
  expect(new Set(pids).size).toBe(4);
  await Promise.all([taken, again, other].map(end));
});

test.each(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])(
  "one that got %s while it waited is not taken",
  async (signal) => {
    const launchers = launchersOf();
    launchers.prepare();
    const pid = await prepared();
    process.kill(pid, signal);
    // Until it has been heard of.
    while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => setImmediate(resolve));
    const taken = launchers.take(limits);
    expect(await nextLine(taken)).toEqual({ prepared: true });
    expect(taken.process.pid).not.toBe(pid);
    await end(taken);
  },
);

test("one whose first process died while it waited is not taken", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  const inner = () => descendants(process.pid).find(({ name }) => name === "sandboxd-init");
  while (inner() === undefined) await new Promise((resolve) => setImmediate(resolve));
  const pid = await prepared();
  process.kill(inner()?.pid ?? 0, "SIGKILL");
  while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => setImmediate(resolve));
  const taken = launchers.take(limits);
  expect(await nextLine(taken)).toEqual({ prepared: true });
  expect(taken.process.pid).not.toBe(pid);
  await end(taken);
});

test("none outlives a close, and none is prepared after it", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  await prepared();
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
  expect(waiting()).toEqual([]);
});

test("a binary that is not there, or leads nowhere, is told by who takes a launcher", async () => {
  const missing = launchersOf("/nowhere/sandboxd");
  missing.prepare();
  await new Promise((resolve) => setImmediate(resolve));
  const { error } = await missing.take(limits).process.closed;
  expect(error).toMatchObject({ code: "ENOENT", message: "spawn /nowhere/sandboxd ENOENT" });

  const path = join(folder, "sandboxd");
  symlinkSync(path, path);
  const circle = launchersOf(path);
  circle.prepare();
  expect((await circle.take(limits).process.closed).error).toMatchObject({ code: "ELOOP" });
});

test("a close does not wait for a spawner that stands still", async () => {
  const launchers = launchersOf();
  launchers.prepare();
  await prepared();
  const spawner = descendants(process.pid).find(({ name }) => name === "sandboxd-spawn");
  if (spawner === undefined) throw new Error("no spawner");
  process.kill(spawner.pid, "SIGSTOP");
  await launchers.close();
  expect(waiting()).toEqual([]);
});
