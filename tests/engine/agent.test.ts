import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent } from "./agent_client.ts";

let agent: Agent;
beforeAll(async () => {
  agent = await Agent.start();
}, 900_000);
afterAll(async () => {
  await agent.stop();
});

const alive = (pattern: string): string =>
  execFileSync("ps", ["-eo", "stat,args"])
    .toString()
    .split("\n")
    .filter((line) => line.includes(pattern) && !line.startsWith("Z"))
    .join("\n");

describe("utilities", () => {
  test("ping, version and commands answer", async () => {
    expect((await agent.call("GET", "/api/ping")).json().message).toBe("pong");
    expect((await agent.call("GET", "/api/version")).json().version).toBe("0.12.10");
    expect((await agent.call("GET", "/api/commands")).json().availableCommands).toContain("bash");
    expect((await agent.call("GET", "/nothing")).status).toBe(404);
  });

  test("a request that is no HTTP is refused", async () => {
    const socket = await agent.connect();
    socket.write("nonsense\r\n\r\n");
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(Buffer.from(chunk));
    expect(Buffer.concat(chunks).toString()).toContain("400");
  });

  test("a port inside is joined, and a closed one is named", async () => {
    const server = createServer((_request, response) => response.end("inside"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const socket = await agent.connect(port);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = "";
    for await (const chunk of socket) text += String(chunk);
    expect(text).toContain("inside");
    await new Promise((resolve) => server.close(resolve));
    await expect(agent.connect(port)).rejects.toThrow("ERR ECONNREFUSED");
  });
});

describe("sessions", () => {
  test("directory, variables and functions stay between commands, and sessions do not share them", async () => {
    await agent.post("/api/session/create", { id: "state" });
    const run = (command: string) => agent.exec(command, { sessionId: "state" });
    await run("cd /tmp; export A=1; b=2; f() { echo f$1; }");
    expect(await run('echo "$PWD $A $b $(f x)"')).toMatchObject({
      stdout: "/tmp 1 2 fx\n",
      exitCode: 0,
      success: true,
    });
    expect((await agent.exec('echo "[$A]$PWD"')).stdout).toBe(`[]${agent.workspace}\n`);
    expect((await agent.post("/api/session/create", { id: "state" })).code).toBe("SESSION_ALREADY_EXISTS");
  });

  test("stdout and stderr are apart, statuses are told, input is empty", async () => {
    expect(await agent.exec("echo out; echo err >&2; exit_code=3; (exit 3)")).toMatchObject({
      stdout: "out\n",
      stderr: "err\n",
      exitCode: 3,
      success: false,
    });
    expect(await agent.exec("cat; read x; echo got:$x")).toMatchObject({ stdout: "got:\n" });
    expect((await agent.exec("no-such-command")).exitCode).toBe(127);
  });

  test("heredocs, odd ends of a command and long commands work", async () => {
    const here = await agent.exec("cat > t <<'EOF'\nline $HOME\nEOF\nwc -l < t; cat t");
    expect(String(here.stdout)).toBe("1\nline $HOME\n");
    for (const command of ["echo a \\", "echo a #", "true &", "cat <<EOF\nno end"]) {
      await agent.exec(command);
      expect((await agent.exec("echo ok")).stdout).toBe("ok\n");
    }
    const long = "x".repeat(200_000);
    expect((await agent.exec(`v=${long}; echo \${#v}`)).stdout).toBe("200000\n");
    expect((await agent.exec("if then")).exitCode).not.toBe(0);
    expect((await agent.exec(" ")).code).toBe("INVALID_COMMAND");
    expect((await agent.exec("a\0b")).code).toBe("INVALID_COMMAND");
  });

  test("a command's own env and cwd do not stay", async () => {
    await agent.exec("export KEEP=1; unset GONE");
    const own = await agent.exec('echo "$KEEP $GONE $PWD"; env | grep GONE', {
      env: { KEEP: "it's 2", GONE: "x y" },
      cwd: "/",
    });
    expect(own.stdout).toBe("it's 2 x y /\nGONE=x y\n");
    expect((await agent.exec('echo "$KEEP [$GONE] $PWD"')).stdout).toBe(`1 [] ${agent.workspace}\n`);
    expect((await agent.exec("false", { env: { A: "1" } })).exitCode).toBe(1);
    expect((await agent.exec("pwd", { cwd: "/no/such" })).exitCode).toBe(1);
  });

  test("output that is no text is still an answer, as bytes when asked for", async () => {
    expect((await agent.exec("printf 'a\\377b'")).stdout).toBe("a�b");
    const bytes = await agent.exec("printf 'a\\377b'", { encoding: "base64" });
    expect(Buffer.from(String(bytes.stdout), "base64")).toEqual(Buffer.from([97, 255, 98]));
    expect(String((await agent.exec("head -c 3000000 /dev/zero | tr '\\0' x")).stdout).length).toBe(
      3_000_000,
    );
  });

  test("what runs on in the background neither holds up an answer nor mixes into a later one", async () => {
    const started = Date.now();
    expect((await agent.exec("(sleep 0.3; echo late) & echo now")).stdout).toBe("now\n");
    expect(Date.now() - started).toBeLessThan(250);
    expect((await agent.exec("sleep 0.5; echo later")).stdout).toBe("later\n");
  });

  test("exit ends the session with one clear error, and the next command starts afresh", async () => {
    for (const [command, code] of [
      ["exit 42", 42],
      ["kill -9 $$", 137],
      ["set -e; false", 1],
      ["exec true", 0],
    ] as const) {
      await agent.exec("cd /; A=1", { sessionId: "ends" });
      const ended = await agent.exec(command, { sessionId: "ends" });
      expect(ended).toMatchObject({
        code: "SESSION_TERMINATED",
        httpStatus: 410,
        context: { sessionId: "ends", exitCode: code },
      });
      expect((await agent.exec('echo "fresh $A"; pwd', { sessionId: "ends" })).stdout).toBe(
        `fresh \n${agent.workspace}\n`,
      );
    }
  });

  test("a shell that died while idle is noticed", async () => {
    const { stdout } = await agent.exec("echo $$", { sessionId: "idle" });
    process.kill(Number(stdout), "SIGKILL");
    while (existsSync(`/proc/${Number(stdout)}`)) await new Promise((resolve) => setImmediate(resolve));
    expect((await agent.exec("echo a", { sessionId: "idle" })).code).toBe("SESSION_TERMINATED");
    expect((await agent.exec("echo a", { sessionId: "idle" })).stdout).toBe("a\n");
  });

  test("a shell that has become another program is ended, and reported like any other that ended", async () => {
    // The kernel lets go of the old program's descriptors when the new one runs, so that one says that it does.
    const program = "exec sh -c '> became; exec sleep 41.5' 198<&- 199>&-";
    const { stdout } = await agent.exec(`trap "${program}" USR1; echo $$`, { sessionId: "becomes" });
    process.kill(Number(stdout), "SIGUSR1");
    const became = join(agent.workspace, "became");
    while (!existsSync(became)) await new Promise((resolve) => setImmediate(resolve));
    expect(await agent.exec("echo a", { sessionId: "becomes" })).toMatchObject({
      code: "SESSION_TERMINATED",
      context: { sessionId: "becomes", exitCode: 137 },
    });
    expect(existsSync(`/proc/${Number(stdout)}`)).toBe(false);
    expect((await agent.exec("echo a", { sessionId: "becomes" })).stdout).toBe("a\n");
  });

  test("a session that is deleted under a command ends it with a typed error", async () => {
    const running = agent.exec("sleep 31.5", { sessionId: "deleted" });
    await new Promise((resolve) => setTimeout(resolve, 100));
    await agent.post("/api/session/delete", { sessionId: "deleted" });
    expect((await running).code).toBe("SESSION_DESTROYED");
    expect(alive("sleep 31.5")).toBe("");
    expect((await agent.exec("echo new", { sessionId: "deleted" })).stdout).toBe("new\n");
  });

  test("without a session nothing is kept and exit is a status", async () => {
    const run = (command: string) =>
      agent.exec(command, { sessionId: "__DISABLE_SESSION__", env: { V: "v" } });
    expect(await run("cd /; X=1; echo $V; exit 42")).toMatchObject({ exitCode: 42, stdout: "v\n" });
    expect((await run("echo [$X]; pwd")).stdout).toBe(`[]\n${agent.workspace}\n`);
  });
});

describe("timeouts and hang-ups", () => {
  test.each(["test", "__DISABLE_SESSION__"])("a timeout ends the whole tree (%s)", async (sessionId) => {
    const cases = [
      "echo begun; trap '' TERM; (trap '' TERM; sleep 3071) & sleep 3071",
      "echo begun; yes > /dev/null & sleep 3072",
      "echo begun; python3 -c 'import os,time; os.fork() or time.sleep(3073)'; sleep 3073",
      "echo begun; setsid sleep 3074 & sleep 3074",
    ];
    for (const command of cases) {
      const result = await agent.exec(command, { sessionId, timeoutMs: 300 });
      expect(result).toMatchObject({ exitCode: 124, success: false });
      expect(result.stdout).toBe("begun\n");
      expect(result.stderr).toContain("Command timed out after 300ms");
    }
    expect(alive("sleep 307")).toBe("");
    expect(alive("time.sleep(307")).toBe("");
  });

  test("a loop of the shell itself is ended, and the session is usable after it", async () => {
    const result = await agent.exec("while :; do :; done", { sessionId: "loop", timeoutMs: 200 });
    expect(result.exitCode).toBe(124);
    expect((await agent.exec("echo after", { sessionId: "loop" })).stdout).toBe("after\n");
  });

  test("a stopped process does not outlive its timeout", async () => {
    const result = await agent.exec("sleep 3075 & kill -STOP $!; wait", {
      sessionId: "stopped",
      timeoutMs: 200,
    });
    expect(result.exitCode).toBe(124);
    expect(alive("sleep 3075")).toBe("");
  });

  test("a caller that hangs up ends its command", async () => {
    const socket = await agent.connect();
    const body = JSON.stringify({ command: "sleep 3076", sessionId: "hangup" });
    socket.write(`POST /api/execute HTTP/1.1\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    await expect.poll(() => alive("sleep 3076")).not.toBe("");
    socket.destroy();
    await expect.poll(() => alive("sleep 3076"), { timeout: 5000 }).toBe("");
    expect((await agent.exec("echo on", { sessionId: "hangup" })).stdout).toBe("on\n");
  });
});

describe("streams", () => {
  test("a command's events come in order, with whole characters", async () => {
    const events = await agent.events("POST", "/api/execute/stream", {
      command: "printf 'caf\\303'; sleep 0.1; printf '\\251'; echo e >&2; exit 3",
      sessionId: "test",
    });
    expect(events[0]).toMatchObject({ type: "start" });
    const text = events
      .filter((event) => event.type === "stdout")
      .map((event) => event.data)
      .join("");
    expect(text).toBe("café");
    expect(events.some((event) => event.type === "stderr" && event.data === "e\n")).toBe(true);
    expect(events.at(-1)).toMatchObject({ type: "complete", exitCode: 3 });
  });

  test("a stream sees the session's variables and directory and ends with its reader", async () => {
    await agent.exec("cd /; export SEEN=yes", { sessionId: "streamed" });
    const events = await agent.events(
      "POST",
      "/api/execute/stream",
      { command: 'echo "$SEEN $PWD"; sleep 3077', sessionId: "streamed" },
      (event) => event.type === "stdout",
    );
    expect(events.at(-1)?.data).toBe("yes /\n");
    await expect.poll(() => alive("sleep 3077"), { timeout: 5000 }).toBe("");
  });
});

describe("processes", () => {
  test("start, list, get, logs, stream, exit code", async () => {
    const started = await agent.post("/api/process/start", {
      command: "echo one; echo two >&2; sleep 0.2; exit 5",
      sessionId: "test",
      processId: "p1",
    });
    expect(started).toMatchObject({ success: true, processId: "p1" });
    const events = await agent.events("GET", "/api/process/p1/stream");
    expect(events.at(-1)).toMatchObject({ type: "exit", exitCode: 5 });
    expect((await agent.call("GET", "/api/process/p1")).json().process).toMatchObject({
      id: "p1",
      status: "failed",
      exitCode: 5,
    });
    expect((await agent.call("GET", "/api/process/p1/logs")).json()).toMatchObject({
      stdout: "one\n",
      stderr: "two\n",
    });
    expect((await agent.call("GET", "/api/process/none")).json()).toMatchObject({
      code: "PROCESS_NOT_FOUND",
      httpStatus: 404,
    });
  });

  test("kill ends the tree and outliving its session is normal", async () => {
    await agent.post("/api/session/create", { id: "short" });
    await agent.post("/api/process/start", {
      command: "sleep 3078 & sleep 3078",
      sessionId: "short",
      processId: "p2",
    });
    await agent.post("/api/session/delete", { sessionId: "short" });
    expect((await agent.call("GET", "/api/process/p2")).json().process).toMatchObject({ status: "running" });
    expect(alive("sleep 3078")).not.toBe("");
    expect((await agent.call("DELETE", "/api/process/p2")).json()).toMatchObject({ success: true });
    expect(alive("sleep 3078")).toBe("");
    expect((await agent.call("GET", "/api/process/p2")).json().process).toMatchObject({ status: "killed" });
  });

  test("kill-all counts what it ended; long logs are whole", async () => {
    await agent.post("/api/process/start", {
      command: "seq 1 100000; sleep 3079",
      sessionId: "test",
      processId: "p3",
    });
    await expect
      .poll(async () => String((await agent.call("GET", "/api/process/p3/logs")).json().stdout).length)
      .toBe(588_895);
    expect((await agent.call("DELETE", "/api/process/kill-all")).json()).toMatchObject({ cleanedCount: 1 });
  });

  test("a port is watched until it answers, or its process ends", async () => {
    const port = 20000 + (process.pid % 10000);
    await agent.post("/api/process/start", {
      command: `sleep 0.2; exec python3 -m http.server ${port} --bind 127.0.0.1`,
      sessionId: "test",
      processId: "web",
    });
    const events = await agent.events("POST", "/api/port-watch", {
      port,
      mode: "http",
      path: "/",
      statusMin: 200,
      statusMax: 399,
      processId: "web",
    });
    expect(events.at(-1)).toMatchObject({ type: "ready", port });
    await agent.call("DELETE", "/api/process/web");
    await agent.post("/api/process/start", { command: "exit 7", sessionId: "test", processId: "brief" });
    const ended = await agent.events("POST", "/api/port-watch", { port, mode: "tcp", processId: "brief" });
    expect(ended.at(-1)).toMatchObject({ type: "process_exited", exitCode: 7 });
  });
});
