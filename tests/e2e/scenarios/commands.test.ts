/** exe-e1, exe-e3, ses-e1, ses-e3, prc-e2: commands, sessions and processes that misbehave. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let itx: Itx;
beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_scenarios");
});
afterAll(() => server?.close());

const create = (name: string): Promise<SandboxHandle> =>
  itx.sandboxes.get(`/sandboxes/${name}`).create({ instanceType: "standard-4" });
const code = (call: Promise<unknown>) =>
  call.then(
    () => "no error",
    (error: unknown) => (error instanceof Error && "code" in error ? String(error.code) : String(error)),
  );

describe("exe-e1: a timeout ends the whole group", () => {
  let sandbox: SandboxHandle;
  beforeAll(async () => {
    sandbox = await create("kill");
  });

  test.each([
    ["children that ignore TERM", "echo begun; trap '' TERM; (trap '' TERM; sleep 300) & sleep 300", 1000],
    ["a child that holds the pipes", "echo begun; sleep 300 & sleep 300", 500],
    ["a busy child in the background", "echo begun; yes > /dev/null & sleep 300", 500],
    [
      "a fork that leaves its parent",
      "echo begun; python3 -c 'import os,time; os.fork() or time.sleep(300)'; sleep 300",
      500,
    ],
    ["a group stopped with SIGSTOP", "echo begun; kill -STOP $$; sleep 300", 500],
  ])("%s", async (_name, command, timeout) => {
    const result = await sandbox.exec(command, { timeout });
    expect(result.exitCode).toBe(124);
    expect(result.stdout).toBe("begun\n");
    expect(result.stderr).toMatch(/did not end within \d+ ms/);
    const { stdout } = await sandbox.exec(
      "ps -eo stat=,args= | grep -E 'sleep 300|^[^Z]* yes$' | grep -v grep || true",
    );
    expect(stdout.split("\n").filter((line) => line !== "" && !line.startsWith("Z"))).toEqual([]);
  });

  test("a command that ends in time keeps its own code", async () => {
    expect((await sandbox.exec("sleep 0.1; exit 3", { timeout: 20_000 })).exitCode).toBe(3);
    expect((await sandbox.exec("exit 4", { timeout: 2_147_483_647 })).exitCode).toBe(4);
  });

  test("a stream ends with 124 too", async () => {
    const { stdout } = await sandbox.exec("echo begun; sleep 300", { timeout: 500 });
    expect(stdout).toBe("begun\n");
  });
});

describe("exe-e3: commands that read stdin do not hang", () => {
  let sandbox: SandboxHandle;
  beforeAll(async () => {
    sandbox = await create("stdin");
  });

  const heredoc = "cat > /workspace/t <<'EOF'\nline $HOME\nEOF\nwc -l < /workspace/t";
  test("a heredoc, at top level and in a session", async () => {
    expect((await sandbox.exec(heredoc)).stdout.trim()).toBe("1");
    const session = await sandbox.createSession({ id: "heredoc" });
    expect((await session.exec(heredoc)).stdout.trim()).toBe("1");
    expect((await sandbox.readFile("/workspace/t")).content).toBe("line $HOME\n");
  });

  test.each([
    ["cat", 0, ""],
    ["read x; echo got:$x", 0, "got:\n"],
    ["cat <<EOF\nno end", 0, "no end\n"],
    ["echo one \\", 0, "one \\\n"],
    ["echo one # and no more", 0, "one\n"],
    ["true &", 0, ""],
    ["if true; then", 2, ""],
    ["echo 'no end", 2, ""],
    [`echo ${"x".repeat(200_000)} | wc -c`, 0, "200001\n"],
  ])("%.30s", async (command, exitCode, stdout) => {
    const result = await sandbox.exec(command, { timeout: 20_000 });
    expect({ exitCode: result.exitCode, stdout: result.stdout }).toEqual({ exitCode, stdout });
    expect((await sandbox.exec("echo ok")).stdout).toBe("ok\n");
  });
});

describe("ses-e1: exit in a session", () => {
  test.each(["exit 42", "kill -9 $$", "set -e; false", "exec true"])("%s", async (command) => {
    const sandbox = await create(`shell-${command.replaceAll(/\W+/g, "-")}`);
    const session = await sandbox.createSession({ id: "build" });
    await session.exec("cd /tmp; export A=1");
    expect(await code(session.exec(command))).toMatch(/session_terminated/i);
    const again = await sandbox.createSession({ id: "build" }).catch(() => session);
    expect((await again.exec('echo "fresh $A"; pwd')).stdout).toBe("fresh \n/workspace\n");
    await sandbox.destroy();
  });

  test("at top level the code is the command's, and no state is carried over", async () => {
    const sandbox = await create("top");
    expect((await sandbox.exec("export A=1; cd /tmp; exit 42")).exitCode).toBe(42);
    expect((await sandbox.exec('echo "fresh $A"; pwd')).stdout).toBe("fresh \n/workspace\n");
    await sandbox.destroy();
  });

  test("a session deleted under a running command: a typed error, and the others go on", async () => {
    const sandbox = await create("deleted");
    const session = await sandbox.createSession({ id: "gone" });
    const other = await sandbox.createSession({ id: "other" });
    const running = code(session.exec("sleep 60"));
    const elsewhere = other.exec("sleep 1; echo still here");
    await sandbox.deleteSession("gone");
    expect(await running).not.toBe("no error");
    expect((await elsewhere).stdout).toBe("still here\n");
    const again = await sandbox.createSession({ id: "gone" });
    expect((await again.exec("echo new")).stdout).toBe("new\n");
    await sandbox.destroy();
  });
});

describe("ses-e3: a stuck command does not take the sandbox with it", () => {
  test.each(["tail -f /dev/null", "cat /dev/zero > /dev/null", "sleep 100 & kill -STOP $!; wait $!"])(
    "%s",
    async (command) => {
      const sandbox = await create(`stuck-${command.replaceAll(/\W+/g, "-")}`);
      const session = await sandbox.createSession({ id: "stuck" });
      const other = await sandbox.createSession({ id: "other" });
      const stuck = session.exec(command, { timeout: 1000 });
      expect((await other.exec("echo unnoticed")).stdout).toBe("unnoticed\n");
      expect((await stuck).exitCode).toBe(124);
      const after = await session.exec("echo after").catch(async (error: unknown) => {
        expect(String(error instanceof Error && "code" in error && error.code)).toMatch(
          /session_terminated/i,
        );
        return await (await sandbox.createSession({ id: "stuck" })).exec("echo after");
      });
      expect(after.stdout).toBe("after\n");
      await sandbox.destroy();
    },
  );
});

describe("prc-e2: background processes outlive calls, not the sandbox", () => {
  /** The scenario waits 90 s for what an idle timer or a forgotten reaper would do. */
  const WAIT_MS = process.env.FULL === "1" ? 90_000 : 3_000;

  test("list and reality agree, before and after a sleep", async () => {
    const sandbox = await create("bg");
    const one = await sandbox.startProcess("python3 -u -m http.server 9001");
    const two = await sandbox.startProcess("python3 -u -m http.server 9002");
    const three = await sandbox.startProcess("sleep 600");
    const ids = [one.id, two.id, three.id].sort();
    await sandbox.exec(
      "for i in $(seq 100); do curl -sf localhost:9001 >/dev/null && curl -sf localhost:9002 >/dev/null && exit; sleep 0.1; done; exit 1",
    );
    const session = await sandbox.createSession({ id: "passing" });
    await session.exec("echo here");
    await sandbox.deleteSession("passing");
    await sandbox.exec("sleep 60", { timeout: 300 });
    const stream = await sandbox.execStream("sleep 5");
    await stream.cancel();

    const running = async () =>
      (await sandbox.listProcesses())
        .filter(({ status }) => status === "running")
        .map(({ id }) => id)
        .sort();
    expect(await running()).toEqual(ids);
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    expect(await running()).toEqual(ids);
    expect(
      (
        await sandbox.exec(
          "curl -sf localhost:9001 >/dev/null && curl -sf localhost:9002 >/dev/null; echo $?",
        )
      ).stdout,
    ).toBe("0\n");
    const logs = await sandbox.getProcessLogs(one.id);
    expect(logs.stdout + logs.stderr).toMatch(/Serving HTTP[\s\S]*"GET \/ HTTP/);

    await sandbox.sleep();
    expect((await sandbox.exec("curl -s localhost:9001; echo $?")).stdout).toBe("7\n");
    expect(await sandbox.listProcesses()).toEqual([]);
    await sandbox.destroy();
  });
});

test("a result too large for one message says so, and the sandbox goes on", async () => {
  const sandbox = await create("large-result");
  const kept = await sandbox.exec("head -c 25000000 /dev/zero | tr '\\0' x");
  expect(kept.stdout).toHaveLength(25_000_000);
  await expect(sandbox.exec("head -c 40000000 /dev/zero | tr '\\0' x; touch /tmp/ran")).rejects.toMatchObject(
    {
      code: "COMMAND_EXECUTION_ERROR",
      message: expect.stringMatching(/has run.* has 40\d{6} bytes.*execStream\(\)/),
    },
  );
  expect((await sandbox.exists("/tmp/ran")).exists).toBe(true);
  await sandbox.exec("head -c 40000000 /dev/zero | tr '\\0' x > /tmp/large");
  await expect(sandbox.readFile("/tmp/large")).rejects.toMatchObject({ code: "FILE_TOO_LARGE" });
});
