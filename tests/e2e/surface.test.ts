/** The handle as a client meets it over capnweb: callbacks, streams, sessions, states, terminals and errors of a real sandbox. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { callLoosely } from "../support/loosely.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let itx: Itx;
let sandbox: SandboxHandle;

beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_surface");
  sandbox = await itx.sandboxes.get("/sandboxes/main").create({ instanceType: "basic", env: { A: "1" } });
});
afterAll(() => server.close());

test("exec calls back with output as it comes", async () => {
  const output: string[] = [];
  const { exitCode } = await sandbox.exec("echo one; sleep 0.2; echo two >&2; sh -c 'exit 7'", {
    stream: true,
    onOutput: (stream, data) => output.push(`${stream} ${data.trim()}`),
  });
  expect(exitCode).toBe(7);
  expect(output).toEqual(["stdout one", "stderr two"]);
});

test("a process calls back after the call that started it has ended", async () => {
  const output: string[] = [];
  const ended = Promise.withResolvers<number | null>();
  const process = await sandbox.startProcess("sh -c 'echo up; sleep 0.3; echo more; exit 3'", {
    onOutput: (_stream, data) => output.push(data.trim()),
    onExit: (code) => ended.resolve(code),
  });
  expect(process.id).toBeTypeOf("string");
  expect(await ended.promise).toBe(3);
  expect(output).toEqual(["up", "more"]);
});

test("a session keeps its folder and variables, and is found again by its id", async () => {
  const session = await sandbox.createSession({ id: "dev", cwd: "/tmp", env: { X: "y" } });
  expect((await session.exec("pwd; echo $X; export Z=kept")).stdout).toBe("/tmp\ny\n");
  const again = await sandbox.getSession("dev");
  expect(await again.id).toBe("dev");
  expect((await again.exec("echo $Z")).stdout).toBe("kept\n");
});

test("the live state is the state now, and then every change", async () => {
  const reader = (await sandbox.liveState()).getReader();
  const first = (await reader.read()).value;
  expect(first).toMatchObject({ status: "running", instanceType: "basic", env: { A: "1" } });
  await sandbox.setEnvVars({ B: "2" });
  expect((await reader.read()).value).toMatchObject({ env: { A: "1", B: "2" } });
  await sandbox.setEnvVars({ A: null });
  expect((await reader.read()).value?.env).toEqual({ B: "2" });
  await reader.cancel();
  expect((await sandbox.processor.snapshot()).env).toEqual({ B: "2" });
});

test("an event is waited for by its type, and by its offset", async () => {
  const started = await sandbox.processor.waitUntilEvent({ type: "started", timeoutMs: 10_000 });
  expect(started.type).toBe("events.iterate.com/sandbox/started");
  expect(await sandbox.processor.waitUntilEvent({ offset: started.offset })).toEqual(started);
  await expect(sandbox.processor.waitUntilEvent({ type: "destroyed", timeoutMs: 100 })).rejects.toMatchObject(
    {
      code: "wait_timeout",
    },
  );
});

test("refusals arrive with their codes", async () => {
  await expect(itx.sandboxes.get("/sandboxes/main").create()).rejects.toMatchObject({
    code: "sandbox_exists",
  });
  await expect(callLoosely(sandbox, "exec", 7)).rejects.toMatchObject({ code: "invalid_command" });
  await expect(sandbox.setSleepAfter("soon")).rejects.toMatchObject({ code: "invalid_sleep_after" });
});

test("a terminal is a socket of its own, and knows nothing of the token", async () => {
  const address = new URL("/terminal?path=/sandboxes/main&cols=80&rows=24", server.url);
  address.protocol = "ws:";
  const token = await server.server.mintToken("prj_surface");
  const socket = new WebSocket(address.href, { headers: { authorization: `Bearer ${token}` } });
  let shown = "";
  socket.on("message", (data) => {
    shown += String(data);
  });
  socket.on("open", () => socket.send(Buffer.from("echo answer-$((6*7)); env | grep -c Bearer\n")));
  await expect.poll(() => shown, { timeout: 20_000 }).toMatch(/answer-42\s+0/);
  socket.terminate();
});

test("a call that kill() cuts off is told so, and may be made again", async () => {
  const cut = sandbox.exec("touch /tmp/begun; sleep 20").catch((error: unknown) => error);
  await expect.poll(async () => (await sandbox.exists("/tmp/begun")).exists, { timeout: 20_000 }).toBe(true);
  await sandbox.kill();
  expect(await cut).toMatchObject({ code: "OPERATION_INTERRUPTED", retryable: true });
  expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
});

test("a destroyed sandbox refuses, and stays in the list", async () => {
  await sandbox.destroy();
  await sandbox.destroy();
  await expect(sandbox.exec("true")).rejects.toMatchObject({ code: "sandbox_destroyed", status: 410 });
  for (const instanceType of ["basic", "lite"]) {
    await expect(itx.sandboxes.get("/sandboxes/main").create({ instanceType })).rejects.toMatchObject({
      code: "sandbox_destroyed",
    });
  }
  const { sandboxes } = await itx.sandboxes.list({ status: "destroyed" });
  expect(sandboxes.map(({ path }) => path)).toEqual(["/sandboxes/main"]);
});
