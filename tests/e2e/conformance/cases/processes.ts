/** Background processes, and the objects that stand for them. */
import assert from "node:assert/strict";
import type { LogEvent, Process } from "@cloudflare/sandbox";
import { type Cases, client, object, refuses, streamRefuses, type World } from "../case.ts";

const sleeper = "sleep 4323";

async function withProcess(
  { sandbox }: World,
  command: string,
  use: (process: Process) => Promise<void>,
): Promise<void> {
  const process = await sandbox.startProcess(command);
  try {
    await use(process);
  } finally {
    await process.kill();
  }
}

/** A page on a port, by what every image of the SDK has. */
export const pageServer = (port: number, directory = "/workspace") =>
  `python3 -m http.server ${port} --bind 127.0.0.1 --directory ${directory}`;

export const processes: Cases = {
  "Sandbox.startProcess": {
    "answers at once with what runs": client(async ({ sandbox }) => {
      const process = await sandbox.startProcess(sleeper, {
        processId: "chosen",
        cwd: "/tmp",
        env: { P: "1" },
      });
      assert.equal(process.id, "chosen");
      assert.equal(process.command, sleeper);
      assert.equal(process.status, "running");
      assert((process.pid ?? 0) > 1);
      const seen = await sandbox.exec(
        // Its shell may not have become the program yet.
        `until tr '\\0' '\\n' < /proc/${process.pid}/environ | grep ^P=; do sleep 0.02; done; readlink /proc/${process.pid}/cwd`,
      );
      assert.equal(seen.stdout, "P=1\n/tmp\n");
      await process.kill();
    }),
    // In the object: a stub's callbacks are gone when the call that took them has ended.
    "calls back with output and the status": object(async (self) => {
      const output: string[] = [];
      const ended = Promise.withResolvers<number | null>();
      let started = "";
      await self.startProcess("echo up; echo down >&2; sh -c 'exit 4'", {
        onStart: ({ id }) => {
          started = id;
        },
        onOutput: (stream, data) => void output.push(`${stream} ${data.trim()}`),
        onExit: (code) => ended.resolve(code),
      });
      assert.equal(await ended.promise, 4);
      assert.deepEqual(output.toSorted(), ["stderr down", "stdout up"]);
      assert.match(started, /./);
    }),
    "an id that is taken is refused": object(async (self) => {
      await self.startProcess(sleeper, { processId: "taken" });
      await refuses(() => self.startProcess(sleeper, { processId: "taken" }), {
        name: "ProcessError",
        code: "PROCESS_ERROR",
      });
      await self.killProcess("taken");
    }),
  },
  "Sandbox.listProcesses": {
    "has what runs and what has ended": client(async ({ sandbox }) => {
      const running = await sandbox.startProcess(sleeper);
      const ended = await sandbox.startProcess("sh -c 'exit 6'");
      await ended.waitForExit();
      const list = await sandbox.listProcesses();
      const of = (id: string) => list.find((process) => process.id === id);
      assert.equal(of(running.id)?.status, "running");
      assert.equal(of(ended.id)?.status, "failed");
      assert.equal(of(ended.id)?.exitCode, 6);
      assert(of(ended.id)?.endTime instanceof Date);
      await running.kill();
    }),
  },
  "Sandbox.getProcess": {
    "finds one by its id, and null for none": client(async ({ sandbox }) => {
      const { id, kill } = await sandbox.startProcess(sleeper);
      const found = await sandbox.getProcess(id);
      assert.equal(found?.command, sleeper);
      assert(found?.startTime instanceof Date);
      assert.equal(await sandbox.getProcess("nobody"), null);
      await kill();
    }),
  },
  "Sandbox.killProcess": {
    "ends it, its children too": client(async ({ sandbox }) => {
      const process = await sandbox.startProcess("sh -c 'sleep 4324 & sleep 4324'");
      await sandbox.killProcess(process.id);
      assert.equal((await sandbox.getProcess(process.id))?.status, "killed");
      assert.equal((await sandbox.exec("pgrep -f 'sleep 432[4]'")).stdout, "");
    }),
    "one that is not there is refused by the SDK's code": object(async (self) => {
      await refuses(() => self.killProcess("nobody"), {
        name: "ProcessNotFoundError",
        code: "PROCESS_NOT_FOUND",
      });
    }),
  },
  "Sandbox.killAllProcesses": {
    "ends all and says how many": client(async ({ another }) => {
      const sandbox = another("kill-all");
      await Promise.all([1, 2, 3].map(() => sandbox.startProcess(sleeper)));
      assert.equal(await sandbox.killAllProcesses(), 3);
      assert.deepEqual(
        new Set((await sandbox.listProcesses()).map(({ status }) => status)),
        new Set(["killed"]),
      );
      await sandbox.destroy();
    }),
  },
  "Sandbox.cleanupCompletedProcesses": {
    "has nothing to clean: the SDK answers 0 and asks nobody": client(async ({ sandbox }) => {
      assert.equal(await sandbox.cleanupCompletedProcesses(), 0);
    }),
  },
  "Sandbox.getProcessLogs": {
    "everything that was printed, by stream": client(async ({ sandbox }) => {
      const process = await sandbox.startProcess("echo out; echo err >&2");
      await process.waitForExit();
      assert.deepEqual(await sandbox.getProcessLogs(process.id), {
        stdout: "out\n",
        stderr: "err\n",
        processId: process.id,
      });
    }),
    "none for one that is not there": object(async (self) => {
      await refuses(() => self.getProcessLogs("nobody"), {
        name: "ProcessNotFoundError",
        code: "PROCESS_NOT_FOUND",
      });
    }),
  },
  "Sandbox.streamProcessLogs": {
    "from the first line, then as it comes, to the status": client(async ({ sandbox, sdk }) => {
      await sandbox.exec("mkfifo -m 600 /tmp/go");
      const process = await sandbox.startProcess("echo first; read x < /tmp/go; echo $x; sh -c 'exit 2'");
      const seen: string[] = [];
      for await (const event of sdk.parseSSEStream<LogEvent>(await sandbox.streamProcessLogs(process.id))) {
        // The first event says which process it is, and is in no declaration of the SDK.
        if (!/^(stdout|stderr|exit)$/.test(event.type)) continue;
        seen.push(`${event.type} ${event.type === "exit" ? event.exitCode : event.data.trim()}`);
        if (seen.length === 1) await sandbox.exec("echo last > /tmp/go");
      }
      assert.deepEqual(seen, ["stdout first", "stdout last", "exit 2"]);
    }),
    "none for one that is not there": object(async (self, world) => {
      await streamRefuses(world, () => self.streamProcessLogs("nobody"), {
        name: "ProcessNotFoundError",
        code: "PROCESS_NOT_FOUND",
      });
    }),
  },
  "Process.kill": {
    "ends it": client(async (world) => {
      await withProcess(world, sleeper, async (process) => {
        await process.kill("SIGTERM");
        assert.equal(await process.getStatus(), "killed");
      });
    }),
  },
  "Process.getStatus": {
    "is asked anew each time": client(async (world) => {
      const process = await world.sandbox.startProcess("true");
      await process.waitForExit();
      assert.equal(await process.getStatus(), "completed");
    }),
  },
  "Process.getLogs": {
    "what was printed so far": client(async (world) => {
      await withProcess(world, `echo printed; ${sleeper}`, async (process) => {
        await process.waitForLog("printed");
        assert.deepEqual(await process.getLogs(), { stdout: "printed\n", stderr: "" });
      });
    }),
  },
  "Process.waitForLog": {
    "a text, and an expression with its groups": client(async (world) => {
      await withProcess(world, `sleep 0.1; echo port 8123 is open; ${sleeper}`, async (process) => {
        assert.equal((await process.waitForLog("is open")).line, "port 8123 is open");
        const { line, match } = await process.waitForLog(/port (\d+)/);
        assert.equal(line, "port 8123 is open");
        assert.equal(match?.[1], "8123");
      });
    }),
    "a process that ends first, and a time that runs out": object(async (self) => {
      const ends = await self.startProcess("sh -c 'exit 9'");
      await refuses(() => ends.waitForLog("never"), {
        name: "ProcessExitedBeforeReadyError",
        code: "PROCESS_EXITED_BEFORE_READY",
      });
      const stays = await self.startProcess(sleeper);
      await refuses(() => stays.waitForLog("never", 100), {
        name: "ProcessReadyTimeoutError",
        code: "PROCESS_READY_TIMEOUT",
      });
      await stays.kill();
    }),
  },
  "Process.waitForPort": {
    "an answer over HTTP, and a connection": client(async (world) => {
      await withProcess(world, pageServer(8101), async (process) => {
        await process.waitForPort(8101, { timeout: 20_000 });
        await process.waitForPort(8101, { mode: "tcp", timeout: 20_000 });
        await process.waitForPort(8101, { path: "/none", status: 404, timeout: 20_000 });
      });
    }),
    "a process that ends first, and a time that runs out": object(async (self) => {
      const ends = await self.startProcess("sh -c 'exit 9'");
      await refuses(() => ends.waitForPort(8102), {
        name: "ProcessExitedBeforeReadyError",
        code: "PROCESS_EXITED_BEFORE_READY",
      });
      const stays = await self.startProcess(sleeper);
      await refuses(() => stays.waitForPort(8102, { timeout: 100 }), {
        name: "ProcessReadyTimeoutError",
        code: "PROCESS_READY_TIMEOUT",
      });
      await stays.kill();
    }),
  },
  "Process.waitForExit": {
    "the status, true to bash for signals": client(async ({ sandbox }) => {
      const exits = await sandbox.startProcess("sh -c 'exit 3'");
      assert.deepEqual(await exits.waitForExit(), { exitCode: 3 });
      const killed = await sandbox.startProcess("sh -c 'kill -9 $$'");
      assert.deepEqual(await killed.waitForExit(10_000), { exitCode: 137 });
    }),
    "a time that runs out": object(async (self) => {
      const stays = await self.startProcess(sleeper);
      await refuses(() => stays.waitForExit(100), {
        name: "ProcessReadyTimeoutError",
        code: "PROCESS_READY_TIMEOUT",
      });
      await stays.kill();
    }),
  },
};
