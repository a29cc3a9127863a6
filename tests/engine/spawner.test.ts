/** One small process starts every launcher, tells of its end, and takes all of them along when it dies. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LauncherProcess } from "../../js/src/engine/launcher-process.ts";
import { sandboxdPath } from "../../js/src/engine/sandboxd-path.ts";
import { Spawner } from "../../js/src/engine/spawner.ts";
import { alive, descendants } from "../soak/processes.ts";

const binary = await sandboxdPath();
const killed = { code: null, signal: "SIGKILL", error: null };
let folder = "";
let socket = "";
let logs: string[] = [];
let spawner: Spawner;
let bareChild: ChildProcess | null = null;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "spawner-"));
  socket = join(folder, "spawner.sock");
  logs = [];
  spawner = new Spawner({ binary, socket, log: (line) => logs.push(line) });
});
afterEach(async () => {
  await spawner.close();
  bareChild?.kill("SIGKILL");
  bareChild = null;
  expect(descendants(process.pid).filter(({ name }) => name.startsWith("sandboxd"))).toEqual([]);
  rmSync(folder, { recursive: true });
});

const second = JSON.stringify({ hostname: "box", env: {}, ports: [], caCertificatePem: "" });
/** Whoever adopts an orphan reaps it in its own time; the spawner must, at once. */
const gone = (...pids: number[]) => expect.poll(() => alive(pids), { timeout: 10_000 }).toEqual([]);
const reaped = (pid: number) => expect.poll(() => existsSync(`/proc/${pid}`)).toBe(false);
const spawnerPid = () => descendants(process.pid).find(({ name }) => name === "sandboxd-spawn")?.pid ?? -1;

/** The first line of a launcher's standard input. */
function config(): string {
  const id = randomUUID();
  const [runtimeDir, upperDir] = ["run", "upper"].map((name) => join(folder, `${name}-${id}`));
  for (const dir of [runtimeDir, upperDir]) mkdirSync(dir ?? "");
  const limits = { memoryBytes: 2 ** 28, cpuWeight: 100, cpuQuota: 1, pids: 256, diskBytes: 1e8 };
  return `${JSON.stringify({ id, runtimeDir, upperDir, limits })}\n`;
}

/** A launcher with its first line. */
function launched(): LauncherProcess {
  const launcher = spawner.launch();
  launcher.write(config());
  return launcher;
}

/** Settles with the line of a launcher that has the field. */
function said(launcher: LauncherProcess, field: string): Promise<Record<string, unknown>> {
  return new Promise((resolve) =>
    launcher.onLine((line) => {
      const message = JSON.parse(line);
      if (field in message) resolve(message);
    }),
  );
}

/** A spawner of the test's own, with nothing between. */
async function bare() {
  const child = spawn(binary, ["spawn", socket], { stdio: ["pipe", "pipe", "pipe"] });
  bareChild = child;
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  expect(line).toBe('{"ready":true}');
  return { child, errors: () => errors };
}

function opened(header: string): Socket {
  const connection = connect({ path: socket, allowHalfOpen: true });
  connection.on("error", () => undefined);
  connection.write(header);
  return connection;
}

/** Settles with what one of the spawner's own lines holds under the key. */
function told(control: Socket, key: string): Promise<unknown> {
  return new Promise((resolve) =>
    createInterface({ input: control })
      .on("line", (line) => {
        const message = JSON.parse(line);
        if (key in message) resolve(message[key]);
      })
      .on("error", () => undefined),
  );
}

test("a launcher becomes a container, and its end is told with its status", async () => {
  const launcher = launched();
  launcher.endInput(second);
  expect(launcher.pid).toBeNull();
  await said(launcher, "ready");
  const pid = launcher.pid ?? 0;
  expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).toBe(`${binary}\0launch\0`);
  expect(readFileSync(`/proc/${pid}/environ`, "utf8")).toBe(`PATH=${process.env.PATH}\0`);
  expect(readFileSync(`/proc/${pid}/comm`, "utf8")).toBe("sandboxd\n");
  launcher.kill("SIGTERM");
  expect(await launcher.closed).toEqual({ code: 0, signal: null, error: null });
  await reaped(pid);
});

test("a status, a signal and a complaint are told", async () => {
  const refused = spawner.launch();
  refused.write("[]\n");
  expect(await said(refused, "exit")).toMatchObject({ reason: "invalid_config" });
  expect(await refused.closed).toEqual({ code: 1, signal: null, error: null });
  const waiting = launched();
  await said(waiting, "prepared");
  waiting.kill("SIGHUP");
  expect(await waiting.closed).toEqual({ code: null, signal: "SIGHUP", error: null });
});

test("one that is killed before anybody knows its id ends of it", async () => {
  const [first, next] = [launched(), launched()];
  first.kill("SIGKILL");
  expect(await first.closed).toEqual(killed);
  next.kill("SIGTERM");
  expect(await next.closed).toEqual({ code: null, signal: "SIGTERM", error: null });
});

test("twenty at once are twenty launchers", async () => {
  const launchers = Array.from({ length: 20 }, launched);
  await Promise.all(launchers.map((launcher) => said(launcher, "prepared")));
  expect(new Set(launchers.map(({ pid }) => pid)).size).toBe(20);
  for (const launcher of launchers) launcher.endInput();
  const ends = await Promise.all(launchers.map(({ closed }) => closed));
  expect(ends.map(({ code }) => code)).toEqual(Array(20).fill(1));
});

test("a spawner that is killed takes its launchers along, and the next launch has a new one", async () => {
  const container = launched();
  container.endInput(second);
  const { pid: inner } = await said(container, "ready");
  const waiting = launched();
  await said(waiting, "prepared");
  const pid = spawnerPid();
  process.kill(pid, "SIGKILL");
  expect(await Promise.all([container.closed, waiting.closed])).toEqual([killed, killed]);
  await gone(container.pid ?? 0, waiting.pid ?? 0, Number(inner));
  const next = launched();
  await said(next, "prepared");
  expect(spawnerPid()).not.toBe(pid);
  expect(logs).toEqual([expect.stringMatching(/the spawner ended by itself.*"signal":"SIGKILL"/)]);
  next.endInput();
  expect(await next.closed).toMatchObject({ code: 1 });
});

test("a launch finds a new spawner although nobody has heard of the old one's death", async () => {
  const before = launched();
  await said(before, "prepared");
  const pid = spawnerPid();
  process.kill(pid, "SIGKILL");
  // The kernel is done with it; this process has not had a turn to notice.
  while (readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] !== "Z");
  const next = launched();
  await said(next, "prepared");
  expect(await before.closed).toEqual(killed);
  next.endInput();
  expect(await next.closed).toMatchObject({ code: 1 });
});

test("signals of a terminal are the host's affair", async () => {
  const launcher = launched();
  await said(launcher, "prepared");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.kill(spawnerPid(), signal);
  launcher.endInput(second);
  await said(launcher, "ready");
  launcher.kill("SIGTERM");
  expect(await launcher.closed).toMatchObject({ code: 0 });
});

test("a close takes what still lives along", async () => {
  const launcher = launched();
  await said(launcher, "prepared");
  launcher.endInput();
  await spawner.close();
  expect(launcher.end).toMatchObject({ code: 1 });
  expect((await spawner.launch().closed).error?.message).toBe("the engine is closing");
});

test("a socket that cannot be is told with its path", async () => {
  const nowhere = join(folder, "nowhere/spawner.sock");
  const other = new Spawner({ binary, socket: nowhere, log: () => undefined });
  const { error } = await other.launch().closed;
  expect(error?.message).toBe(`bind ${nowhere}: No such file or directory`);
  await other.close();
});

test("a half is forgotten with its connection, and what is no header is refused", async () => {
  const { child, errors } = await bare();
  const descriptors = () => readdirSync(`/proc/${child.pid}/fd`).length;
  const before = descriptors();
  const id = randomUUID();
  const half = opened(`${id}c`);
  const partial = opened(id.slice(0, 20));
  await expect.poll(descriptors).toBe(before + 2);
  const bad = ["x".repeat(37), `${id}x`, `${id}c`].map(opened);
  await Promise.all(bad.map((connection) => once(connection.resume(), "end")));
  await expect.poll(errors).toMatch(/begins no launch.*\n.*begins no launch.*\n.*whose like waits/);
  for (const connection of [half, partial, ...bad]) connection.destroy();
  await expect.poll(descriptors).toBe(before);

  const [second, control] = [opened(`${id}e`), opened(`${id}c[]\n`)];
  expect(await told(control, "ended")).toEqual({ code: 1, signal: null });
  for (const connection of [second, control]) connection.destroy();
  await expect.poll(descriptors).toBe(before);
  child.stdin.end();
  expect((await once(child, "exit"))[0]).toBe(0);
});

test("an id stays taken until the end has been heard of, and everything ends with the host's pipe", async () => {
  const { child } = await bare();
  const start = () => {
    const id = randomUUID();
    opened(`${id}e`);
    return opened(`${id}c${config()}`);
  };
  const [control, other] = [start(), start()];
  const [pid, otherPid] = (await Promise.all(
    [control, other].map((each) => told(each, "launcher")),
  )) as number[];
  const ended = told(control, "ended");
  process.kill(pid ?? 0, "SIGKILL");
  expect(await ended).toEqual({ code: null, signal: "SIGKILL" });
  expect(readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /);
  control.destroy();
  await reaped(pid ?? 0);
  child.stdin.end();
  await once(child, "exit");
  await gone(otherPid ?? 0);
});

test("nothing outlives a host that is killed", async () => {
  const script = `
    const { Spawner } = await import(${JSON.stringify(new URL("../../js/src/engine/spawner.ts", import.meta.url))});
    const spawner = new Spawner({ binary: ${JSON.stringify(binary)}, socket: ${JSON.stringify(socket)}, log() {} });
    const launcher = spawner.launch();
    launcher.write(${JSON.stringify(config())});
    launcher.onLine(() => console.log("prepared"));`;
  const host = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(host.stdout, "data");
  const processes = descendants(host.pid ?? 0);
  expect(processes.map(({ name }) => name)).toEqual(["sandboxd-spawn", "sandboxd", "sandboxd-init", "bash"]);
  host.kill("SIGKILL");
  await gone(...processes.map(({ pid }) => pid));
});

test("a spawner without launchers keeps no program alive", async () => {
  const script = `
    const { Spawner } = await import(${JSON.stringify(new URL("../../js/src/engine/spawner.ts", import.meta.url))});
    const spawner = new Spawner({ binary: ${JSON.stringify(binary)}, socket: ${JSON.stringify(socket)}, log() {} });
    const launcher = spawner.launch();
    launcher.write("[]\\n");
    console.log((await launcher.closed).code);`;
  const host = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [[output], [code]] = await Promise.all([once(host.stdout, "data"), once(host, "exit")]);
  expect([String(output), code]).toEqual(["1\n", 0]);
});

test("a launch that meets a dying spawner has the next one", async () => {
  const launcher = launched();
  launcher.endInput();
  await launcher.closed;
  const pid = spawnerPid();
  process.kill(pid, "SIGSTOP");
  const late = launched();
  const prepared = said(late, "prepared");
  // It has connected, and is to be told so in the next turn of the loop, which does not come before the death.
  for (let step = 0; step < 10; step++) await null;
  process.kill(pid, "SIGKILL");
  while (alive([pid]).length > 0);
  await prepared;
  expect(spawnerPid()).not.toBe(pid);
  late.endInput();
  expect(await late.closed).toMatchObject({ error: null });
});

test("a spawner that cannot start for want of descriptors says so, and the next one can", async () => {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch {
    // There are no more.
  }
  const { error } = await launched().closed.finally(() => taken.splice(0).forEach(closeSync));
  expect(error?.message).toMatch(/EMFILE/);
  const next = launched();
  await said(next, "prepared");
  next.endInput();
  await next.closed;
});
