/**
 * eng-e2: five sandboxes on one engine. What three of them do to themselves, the others do not notice; nothing outlives the engine,
 * however it ends.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connect, type ItxConnection } from "../../../js/src/node/client.ts";
import type { Itx, SandboxHandle } from "../../../js/src/node/itx.ts";
import { alive, descendants, loopsOver, mountsUnder } from "../../soak/processes.ts";
import { eventually } from "../../support/server.ts";

const stateDir = mkdtempSync(join(tmpdir(), "itx-apart-"));
const isRoot = process.getuid?.() === 0;
let server: ChildProcess;
let connection: ItxConnection;
let itx: Itx;

/** The engine in a process of its own, so that it can be ended like one. */
async function start(): Promise<void> {
  const script = new URL("../../soak/server-process.ts", import.meta.url).pathname;
  const args = ["--disable-warning=ExperimentalWarning", script, stateDir];
  server = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  if (server.stdout === null) throw new Error("the server has no output");
  for await (const line of createInterface(server.stdout)) {
    if (!line.startsWith("{")) continue;
    const { url, operatorToken } = JSON.parse(line) as { url: string; operatorToken: string };
    connection = await connect({ url, token: operatorToken, project: "prj_apart" });
    itx = connection.itx;
    return;
  }
  throw new Error("the server did not start");
}

async function end(signal: NodeJS.Signals): Promise<number[]> {
  const before = server.pid === undefined ? [] : descendants(server.pid).map(({ pid }) => pid);
  const exited = once(server, "exit");
  server.kill(signal);
  await exited;
  await connection.close();
  return before;
}

const get = (name: string): SandboxHandle => itx.sandboxes.get(`/sandboxes/${name}`);

beforeAll(start);
afterAll(async () => {
  if (server.exitCode === null && server.signalCode === null) await end("SIGTERM");
  rmSync(stateDir, { recursive: true, force: true });
});

/** Small types, so that little work reaches their limits: commands have a sixteenth or a quarter of a processor. */
const hurts: Record<
  string,
  { command: string; check: (answer: { exitCode: number; stdout: string; stderr: string }) => void }
> = {
  bomb: {
    command: `python3 - <<'END'
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(5)
            os._exit(0)
except OSError as error: print(error.strerror)
END`,
    check: ({ stdout }) => expect(stdout).toContain("Resource temporarily unavailable"),
  },
  hog: {
    command: "python3 -c 'x = bytearray(2 << 30)' 2>&1",
    check: ({ exitCode, stdout }) =>
      expect(isRoot ? exitCode : stdout).toEqual(isRoot ? 137 : expect.stringContaining("MemoryError")),
  },
  filler: {
    command: "fallocate -l 8G /workspace/full; head -c 64M /dev/zero > /workspace/more",
    check: ({ exitCode, stderr }) => {
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(/No space left on device/);
    },
  },
};

test.runIf(isRoot)(
  "the others answer throughout, and those that hurt themselves go on after it",
  async () => {
    const quiet = await Promise.all(
      ["one", "two"].map((name) => get(name).create({ instanceType: "basic" })),
    );
    const hurt = await Promise.all(
      Object.keys(hurts).map((name) => get(name).create({ instanceType: "basic" })),
    );
    await Promise.all([...quiet, ...hurt].map((sandbox) => sandbox.exec("true")));

    let over = false;
    const answers = quiet.map(() => 0);
    const answering = quiet.map(async (sandbox, index) => {
      while (!over) {
        expect((await sandbox.exec("echo ok")).stdout).toBe("ok\n");
        answers[index] = (answers[index] ?? 0) + 1;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    });
    const hurting = Object.values(hurts).map(async ({ command, check }, index) => {
      const started = Date.now();
      const answer = await hurt[index]?.exec(command, { timeout: 100_000 });
      console.log(`${Object.keys(hurts)[index]}: ${Date.now() - started} ms`);
      if (answer === undefined) throw new Error("there is no such sandbox");
      check(answer);
    });
    await Promise.all(hurting).finally(() => {
      over = true;
    });
    await Promise.all(answering);
    for (const count of answers) expect(count).toBeGreaterThan(1);
    expect((await hurt[1]?.exec("echo alive"))?.stdout).toBe("alive\n");
    expect((await hurt[2]?.exec("rm -f /workspace/full /workspace/more; echo alive"))?.stdout).toBe(
      "alive\n",
    );
  },
);

test("processes of one sandbox are not those of another", async () => {
  const [one, two] = await Promise.all(
    ["seen", "unseen"].map(async (name) => {
      const sandbox = await get(name).create({ instanceType: "lite" });
      await sandbox.startProcess(`sleep 4${name.length}77`);
      return sandbox;
    }),
  );
  expect((await one?.exec("pgrep -f 'sleep 4[6]77' || echo none"))?.stdout).toBe("none\n");
  expect((await two?.exec("pgrep -f 'sleep 4[4]77' || echo none"))?.stdout).toBe("none\n");
});

test("a killed agent is noticed: its sandbox stops, and starts anew on the next call", async () => {
  const sandbox = await get("killed").create({ instanceType: "lite" });
  const before = new Set(descendants(server.pid ?? 0).map(({ pid }) => pid));
  await sandbox.exec("touch /tmp/mark; sleep 3178 &");
  // A container that waits for nobody has an agent too: this one's is above what runs in it.
  const agent = await eventually("a process of the sandbox", () => {
    const all = descendants(server.pid ?? 0);
    let above = all.find(({ pid, name }) => !before.has(pid) && name === "sleep");
    while (above !== undefined && above.name !== "sandboxd-init") {
      const { parent } = above;
      above = all.find(({ pid }) => pid === parent);
    }
    return above;
  });
  const stopped = sandbox.processor.waitUntilEvent({ type: "stopped", timeoutMs: 30_000 });
  process.kill(agent.pid, "SIGKILL");
  await stopped;
  expect((await sandbox.exec("ls /tmp/mark 2>/dev/null; echo anew")).stdout).toBe("anew\n");
});

/** Nothing of the engine: no process, mount, loop device or file of a container. */
async function expectNothingLeft(before: number[]): Promise<void> {
  await eventually("the end of every process", () => (alive(before).length === 0 ? true : undefined));
  await eventually("the end of every loop device", () =>
    loopsOver(stateDir).length === 0 ? true : undefined,
  );
  expect(mountsUnder(stateDir)).toEqual([]);
}

test.each(["SIGTERM", "SIGKILL"] as const)(
  "after %s nothing is left, and the next start finds everything",
  async (signal) => {
    await get("one")
      .exec("true")
      .catch(() => get("one").create({ instanceType: "basic" }));
    await expectNothingLeft(await end(signal));
    if (signal === "SIGTERM") expect(readdirSync(join(stateDir, "containers"))).toEqual([]);
    await start();
    expect((await get("one").exec("echo again")).stdout).toBe("again\n");
    // What a killed engine left goes in the background of the next.
    await eventually("the folders of the killed engine's containers", () =>
      readdirSync(stateDir).some((name) => name.startsWith("containers.stale")) ? undefined : true,
    );
  },
);
