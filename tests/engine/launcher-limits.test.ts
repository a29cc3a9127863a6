/** Limits hold, hurt their own container only and say so; nothing outlives a dead container. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loopsOver } from "../soak/processes.ts";
import { isRoot, start, type TestContainer } from "./launcher-support.ts";

const mebibyte = 1 << 20;
const limits = {
  memoryBytes: 256 * mebibyte,
  pids: 200,
  cpuWeight: 50,
  cpuQuota: 0.5,
  diskBytes: 512 * mebibyte,
};

function processesOf(marker: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(marker);
    } catch {
      return false;
    }
  });
}

const mounts = (text: string) =>
  readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .filter((line) => line.includes(text));

function groupsOf(id: string): string[] {
  // Other groups may go while it looks, which find reports with its status.
  const { stdout } = spawnSync("find", ["/sys/fs/cgroup", "-maxdepth", "6", "-name", `sandboxd.*.${id}`], {
    encoding: "utf8",
  });
  return stdout.split("\n").filter((line) => line !== "");
}

/** Whether the last process of a group has been reaped; until then the kernel keeps the group. */
function isEmpty(group: string): boolean {
  return ["", "/commands", "/agent"].every((inner) => {
    const procs = `${group}${inner}/cgroup.procs`;
    return !existsSync(procs) || readFileSync(procs, "utf8") === "";
  });
}

/** Waits for the kernel, which takes a container apart after its processes are gone. */
async function eventually(condition: () => boolean): Promise<boolean> {
  for (let attempt = 0; attempt < 400; ++attempt) {
    if (condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return false;
}

describe.runIf(isRoot)("as root", () => {
  let box: TestContainer;
  let neighbour: TestContainer;
  beforeAll(async () => {
    [box, neighbour] = await Promise.all([
      start({ id: "limited", limits }),
      start({ id: "neighbour", limits }),
    ]);
  });
  afterAll(() => Promise.all([box.dispose(), neighbour.dispose()]));

  test("a memory hog is killed, the container lives and says so", async () => {
    const result = await box.exec("python3 -c 'x = bytearray(600 << 20)'");
    expect(result.exitCode).toBe(137);
    await box.until(() => box.lines.some((line) => line.event === "out_of_memory"));
    expect(await box.run("echo alive")).toBe("alive");
    expect(await box.run("python3 -c 'x = bytearray(100 << 20); print(len(x))'")).toBe(String(100 << 20));
  });

  test("a fork bomb stops at the limit, and its neighbour does not notice", async () => {
    const bomb = box.exec(
      `python3 - <<'EOF'
import os, time
count = 0
try:
    while count < 5000:
        if os.fork() == 0:
            time.sleep(3)
            os._exit(0)
        count += 1
except OSError as error:
    print(count, error.strerror)
EOF`,
    );
    expect(await neighbour.run("echo fine")).toBe("fine");
    const { stdout } = await bomb;
    expect(stdout).toContain("Resource temporarily unavailable");
    expect(Number(stdout.split(" ")[0])).toBeLessThan(limits.pids);
    expect((await box.run("sleep 4; echo alive")).endsWith("alive")).toBe(true);
  });

  test("a disk filler fills its own disk only", async () => {
    const result = await box.exec("head -c 2G /dev/zero > /workspace/full");
    expect(result.exitCode).not.toBe(0);
    expect(result.stderr).toMatch(/No space left on device/);
    expect(
      (await box.exec("echo x > /usr/bin/x && cat /usr/bin/x && head -c 1M /dev/zero > /tmp/y")).exitCode,
    ).not.toBe(0);
    await box.run("rm -f /workspace/full /tmp/y && echo x > /tmp/z");
    await neighbour.run("head -c 100M /dev/zero > /workspace/plenty");
  });

  test("processor time is shared out to the commands, not to the agent", async () => {
    const group = await box.run("grep -E '^[0-9]+:(cpu|cpu,cpuacct|):' /proc/self/cgroup | head -1");
    expect(group).toMatch(/commands$/);
    const agent = readFileSync(`/proc/${box.pid}/cgroup`, "utf8");
    expect(agent).not.toMatch(/commands/);
  });

  test("kill -9 of the launcher leaves no process, mount or loop device", async () => {
    const victim = await start({ id: "victim", limits });
    const marker = `9${process.pid}88`;
    await victim.run(`(setsid sleep ${marker} >/dev/null 2>&1 &); (nohup sleep ${marker} >/dev/null 2>&1 &)`);
    expect(await eventually(() => processesOf(marker).length === 2)).toBe(true);
    victim.process.kill("SIGKILL");
    await victim.ended;
    expect(await eventually(() => processesOf(marker).length === 0)).toBe(true);
    expect(await eventually(() => loopsOver(victim.directory).length === 0)).toBe(true);
    expect(mounts(victim.directory)).toEqual([]);
    await victim.dispose();
    expect(await eventually(() => groupsOf("victim").every(isEmpty))).toBe(true);
    // Empty groups are all that it can leave, and the next launch removes those.
    const next = await start({ id: "next", limits });
    expect(groupsOf("victim")).toEqual([]);
    expect(groupsOf("next").length).toBeGreaterThan(0);
    await next.stop();
    expect(groupsOf("next")).toEqual([]);
  });
});

describe("the end of a container", () => {
  test("SIGTERM ends it and everything inside, and leaves nothing", async () => {
    const box = await start({ id: "ending", limits });
    const marker = `8${process.pid}77`;
    await box.run(`(setsid sleep ${marker} >/dev/null 2>&1 &)`);
    box.process.kill("SIGTERM");
    await box.ended;
    expect(box.lines.at(-1)).toMatchObject({ reason: "exited" });
    expect(processesOf(marker)).toEqual([]);
    expect(readdirSync(`${box.directory}/upper`)).toEqual([]);
    expect(loopsOver(box.directory)).toEqual([]);
    await box.dispose();
  });

  test("a signal that comes while it starts is not lost", async () => {
    for (let round = 0; round < 5; ++round) {
      const box = await start({ id: `early-${round}` });
      box.process.kill("SIGTERM");
      await box.ended;
      expect(box.lines.at(-1)).toHaveProperty("exit");
      await box.dispose();
    }
  });

  test("KILL of its first process is reported as 137", async () => {
    const box = await start({ id: "killed" });
    process.kill(box.pid, "SIGKILL");
    expect(await box.ended).toBe(137);
    expect(box.lines.at(-1)).toMatchObject({ exit: 137, reason: "killed" });
    await box.dispose();
  });
});

describe.runIf(isRoot)("as an ordinary user", () => {
  test("who fills the disk is ended with a clear reason", async () => {
    const box = await start({ id: "filler", ordinary: true, limits: { diskBytes: 64 * mebibyte } });
    const filling = box
      .exec("for i in 1 2 3 4 5; do head -c 30M /dev/zero > /workspace/$i; done; sleep 60")
      .catch(() => null);
    expect(await box.ended).toBe(137);
    await filling;
    expect(box.lines.at(-1)).toMatchObject({ exit: 137, reason: "disk_exceeded" });
    expect(String(box.lines.at(-1)?.message)).toMatch(/its disk holds 64 MiB/);
    expect(readdirSync(`${box.directory}/upper`)).toEqual([]);
    await box.dispose();
  });

  test("processes and memory are limited one by one", async () => {
    const box = await start({
      id: "single",
      ordinary: true,
      limits: { pids: 100, memoryBytes: 256 * mebibyte },
    });
    const hog = await box.exec("python3 -c 'x = bytearray(600 << 20)' 2>&1");
    expect(hog.stdout).toContain("MemoryError");
    const bomb = await box.exec(
      "python3 -c 'import os,time\nfor i in range(500):\n  if os.fork() == 0: time.sleep(2); os._exit(0)' 2>&1",
    );
    expect(bomb.stdout).toMatch(/BlockingIOError|Resource temporarily unavailable/);
    const full = "python3 -c 'import os,time\nwhile os.fork(): pass\ntime.sleep(60)' >/dev/null 2>&1 &";
    await box.exec(full);
    await expect
      .poll(() => box.exec("true").then(() => "ran", String), { timeout: 20_000 })
      .toMatch(/RESOURCE_BUSY.*as many processes and threads as it may, 100/);
    // What saves the workspace runs beside them.
    expect((await box.exec("sh -c 'echo saved'", "__sandbox_backup_1")).stdout).toBe("saved\n");
    await box.dispose();
  });
});
