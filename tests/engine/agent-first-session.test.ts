/** The shell that waits for the first session is that session's, or nobody's. */
import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { descendants } from "../soak/processes.ts";
import { Agent } from "./agent_client.ts";

let agent: Agent;
beforeEach(async () => {
  agent = await Agent.start();
}, 900_000);
afterEach(() => agent.stop());

const shells = () => descendants(agent.pid).filter(({ name }) => name === "bash");

/** The pid of the shell that waits. */
async function waiting(): Promise<number> {
  for (;;) {
    const [shell] = shells();
    if (shell !== undefined) return shell.pid;
    await agent.call("GET", "/api/ping");
  }
}

async function open(options: { id: string; cwd?: string; env?: Record<string, string> }) {
  await agent.post("/api/session/create", options);
  const { stdout } = await agent.exec('echo "$$ $PWD $A"', { sessionId: options.id });
  const [pid, cwd, a] = String(stdout).slice(0, -1).split(" ");
  return { pid: Number(pid), cwd, a };
}

/** Until the kernel has ended it. */
async function gone(pid: number): Promise<void> {
  while (existsSync(`/proc/${pid}`)) await agent.call("GET", "/api/ping");
}

test("a session as it comes by default has the shell that waited", async () => {
  const pid = await waiting();
  expect(await open({ id: "first", env: {} })).toEqual({ pid, cwd: agent.workspace, a: "" });
  expect((await open({ id: "second" })).pid).not.toBe(pid);
  const { sessions } = (await agent.call("GET", "/api/session/list")).json();
  expect(sessions).toEqual(["first", "second"]);
});

test("a session in the same directory by another spelling has it too", async () => {
  const pid = await waiting();
  expect(await open({ id: "first", cwd: `${agent.workspace}/.` })).toMatchObject({ pid });
});

test.each([
  { of: "a plain one", value: "1" },
  { of: "a long one of many bytes", value: `\t'"$(exit)\\ ä\n`.repeat(1_000) },
  { of: "an empty one", value: "" },
])("a session with a variable, $of, has it too", async ({ value }) => {
  const pid = await waiting();
  await agent.post("/api/session/create", { id: "own", env: { A: value, B_2: "b" } });
  const { stdout } = await agent.exec('printf %s "$$ $B_2 $A"; env | grep -c ^B_2=b', { sessionId: "own" });
  expect(stdout).toBe(`${pid} b ${value}1\n`);
  const { stdout: inherited } = await agent.exec("bash -c 'printf %s \"$A\"'", { sessionId: "own" });
  expect(inherited).toBe(value);
});

const own: { of: string; options: { cwd?: string; env?: Record<string, string> }; a: string }[] = [
  { of: "a directory", options: { cwd: "/" }, a: "" },
  { of: "a variable that bash reads as it starts", options: { env: { A: "1", BASH_ENV: "/x" } }, a: "1" },
  { of: "a variable that bash keeps itself", options: { env: { A: "1", IFS: "x" } }, a: "1" },
  { of: "a variable that bash cannot set", options: { env: { A: "1", UID: "5" } }, a: "1" },
  {
    of: "more variables than are told in a moment",
    options: { env: { A: "1", B: "b".repeat(100_000) } },
    a: "1",
  },
];
test.each(own)(
  "a session with $of of its own has a shell of its own, and the other ends",
  async ({ options, a }) => {
    const pid = await waiting();
    const session = await open({ id: "own", ...options });
    expect(session.pid).not.toBe(pid);
    expect(session).toMatchObject({ a, cwd: options.cwd ?? agent.workspace });
    await gone(pid);
  },
);

test("a workspace that was replaced meanwhile is the session's", async () => {
  const pid = await waiting();
  rmdirSync(agent.workspace);
  mkdirSync(agent.workspace);
  const session = await open({ id: "late" });
  expect(session.pid).not.toBe(pid);
  expect((await agent.exec("touch here; ls", { sessionId: "late" })).stdout).toBe("here\n");
});

test("a session that carries archives leaves it to the next", async () => {
  const pid = await waiting();
  expect((await open({ id: "__sandbox_backup_1" })).pid).not.toBe(pid);
  expect((await open({ id: "first" })).pid).toBe(pid);
});

test("one that died while it waited is not missed", async () => {
  const pid = await waiting();
  process.kill(pid, "SIGKILL");
  await gone(pid);
  expect((await open({ id: "first" })).pid).not.toBe(pid);
});

test("it ends with the agent", async () => {
  const pid = await waiting();
  await agent.stop();
  expect(existsSync(`/proc/${pid}`)).toBe(false);
});
