/** A crowd that wants the processor, in a sandbox that has next to none of it: calls beside it end, and so does the crowd. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isRoot, start, type TestContainer } from "./launcher-support.ts";

const limits = { memoryBytes: 512 << 20, pids: 400, cpuWeight: 50, cpuQuota: 1 };

/** A hundredth of a processor: one of the crowd waits half a minute for its turn. */
const tight = { "cpu.cfs_quota_us": "1000\n", "cpu.max": "1000 100000\n" };

/** All of them are there before the first takes the processor. */
const size = 150;
const crowd = `exec python3 -S -c '
import os, time
for _ in range(${size}):
    if os.fork() == 0:
        while not os.path.exists("/tmp/begin"): time.sleep(0.1)
        while True: pass
open("/tmp/there", "w")
os.wait()'`;

/** The file of the commands' quota, and what makes it tight. */
function quotaOf(id: string): { file: string; text: string } {
  for (const controller of ["", ...readdirSync("/sys/fs/cgroup")]) {
    const parent = join("/sys/fs/cgroup", controller);
    const groups = existsSync(join(parent, "cgroup.procs")) ? readdirSync(parent) : [];
    for (const group of groups.filter((name) => name.startsWith("sandboxd.") && name.endsWith(`.${id}`))) {
      for (const [name, text] of Object.entries(tight)) {
        const file = join(parent, group, "commands", name);
        if (existsSync(file)) return { file, text };
      }
    }
  }
  throw new Error("there is no quota");
}

/** How long something took, in seconds; a hang ends with the test. */
async function seconds(call: Promise<unknown>): Promise<number> {
  const started = performance.now();
  await call;
  return (performance.now() - started) / 1000;
}

describe.runIf(isRoot)("beside a crowd", () => {
  let box: TestContainer;
  let quota: { file: string; text: string };
  beforeEach(async () => {
    box = await start({ id: "crowd", limits });
    quota = quotaOf("crowd");
    await box.run("echo kept > /workspace/kept");
    await box.call("POST", "/api/process/start", { command: crowd, processId: "crowd" });
    await box.run("until [ -e /tmp/there ]; do sleep 0.05; done; > /tmp/begin");
    writeFileSync(quota.file, quota.text);
  });
  afterEach(() => box.dispose());

  test("the kill of its first process ends everything at once", async () => {
    process.kill(box.pid, "SIGKILL");
    expect(await seconds(box.ended)).toBeLessThan(10);
    expect(box.lines.at(-1)).toMatchObject({ exit: 137, reason: "killed" });
  });

  test("SIGTERM ends everything at once", async () => {
    box.process.kill("SIGTERM");
    expect(await seconds(box.ended)).toBeLessThan(10);
    expect(box.lines.at(-1)).toMatchObject({ reason: "exited" });
  });

  test("a command that gets nothing of it is refused, and the agent serves others meanwhile", async () => {
    let over = false;
    const command = box.call("POST", "/api/execute", { command: "ls /workspace", sessionId: "other" });
    command.finally(() => {
      over = true;
    });
    const reads: number[] = [];
    while (!over) {
      reads.push(await seconds(box.call("POST", "/api/read", { path: "/workspace/kept" })));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(await command).toMatchObject({ code: "RESOURCE_BUSY", context: { resource: "cpu" } });
    expect(Math.max(...reads)).toBeLessThan(3);
  });

  test("the crowd is ended when it is asked for, and its quota is back after it", async () => {
    const killed = box.call("DELETE", "/api/process/crowd");
    expect(await seconds(killed)).toBeLessThan(10);
    expect(await box.run("pgrep -c python3 || true")).toBe("0");
    expect(readFileSync(quota.file, "utf8")).toBe(quota.text);
    expect(await box.run("ls /workspace")).toBe("kept");
  });
});
