/** One launcher waits for its configuration, whatever becomes of it meanwhile. */
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { Launchers } from "../../js/src/engine/launchers.ts";
import { sandboxdPath } from "../../js/src/engine/sandboxd-path.ts";
import { descendants } from "../soak/processes.ts";

const binary = await sandboxdPath();
const waiting = () => descendants(process.pid).filter(({ name }) => name === "sandboxd");

test("a launcher that was prepared is the next to be taken, and the one after it is new", async () => {
  const launchers = new Launchers(binary);
  launchers.prepare();
  launchers.prepare();
  const [prepared, ...others] = waiting();
  expect(others).toEqual([]);
  const [first, second] = [launchers.take(), launchers.take()];
  expect(first.pid).toBe(prepared?.pid);
  expect(second.pid).not.toBe(first.pid);
  // Without a configuration a launcher says so and ends.
  for (const child of [first, second]) {
    child.stdin.end();
    const [code] = await once(child, "exit");
    expect(code).not.toBe(0);
  }
  await launchers.close();
});

test.each(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])(
  "one that got %s while it waited is not taken",
  async (signal) => {
    const launchers = new Launchers(binary);
    launchers.prepare();
    const [prepared] = waiting();
    if (prepared === undefined) throw new Error("no launcher waits");
    process.kill(prepared.pid, signal);
    // Until its parent has heard of it.
    while (existsSync(`/proc/${prepared.pid}`)) await new Promise((resolve) => setImmediate(resolve));
    const taken = launchers.take();
    expect(taken.pid).not.toBe(prepared.pid);
    expect(taken.exitCode ?? taken.signalCode).toBeNull();
    taken.kill("SIGKILL");
    await once(taken, "close");
    await launchers.close();
  },
);

test("none outlives a close, and none is prepared after it", async () => {
  const launchers = new Launchers(binary);
  launchers.prepare();
  expect(waiting()).toHaveLength(1);
  await launchers.close();
  launchers.prepare();
  expect(waiting()).toEqual([]);
});

test("a binary that is not there, or leads nowhere, is told by who takes a launcher", async () => {
  const missing = new Launchers("/nowhere/sandboxd");
  missing.prepare();
  await new Promise((resolve) => setImmediate(resolve));
  const [error] = await once(missing.take(), "error");
  expect(error).toMatchObject({ code: "ENOENT" });
  await missing.close();

  const path = join(mkdtempSync(join(tmpdir(), "launchers-")), "sandboxd");
  symlinkSync(path, path);
  const circle = new Launchers(path);
  circle.prepare();
  expect(() => circle.take()).toThrow(/ELOOP/);
  await circle.close();
  rmSync(dirname(path), { recursive: true });
});
