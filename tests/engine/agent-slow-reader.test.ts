/** Whoever reads slowly gets everything, the end included: what comes while a piece is on its way wakes nobody a second time. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent, type SseEvent } from "./agent_client.ts";
import { openWebSocket } from "./websocket_client.ts";

let agent: Agent;
beforeAll(async () => {
  agent = await Agent.start();
}, 900_000);
afterAll(async () => {
  await agent.stop();
});

/** More than the sockets between the two hold, and less than what the agent keeps. */
const lines = 300_000;

/** A file that the command makes when it has said everything. */
function marker(name: string): string {
  return join(agent.workspace, `${name}.said`);
}
const said = (name: string) =>
  expect.poll(() => existsSync(marker(name)), { interval: 20, timeout: 20_000 }).toBe(true);

/** Opens a stream of events, reads nothing until the command has said everything, then reads to the end. */
async function readLate(name: string, method: string, path: string, body?: unknown): Promise<SseEvent[]> {
  const response = await agent.open(method, path, body);
  await said(name);
  const events = (await text(response)).split("\n\n").filter((event) => event !== "");
  response.socket.destroy();
  return events.map((event) => JSON.parse(event.slice("data: ".length)) as SseEvent);
}

const printed = (events: SseEvent[], field: string) =>
  events
    .filter(({ type }) => type === "stdout")
    .map((event) => event[field])
    .join("").length;

const sevenDigits = 8 * lines;

describe("a reader that pauses until all has been said", () => {
  test.each([
    [
      "python",
      `print('1234567\\n' * ${lines}, end='')
import threading
threading.Timer(0.3, lambda: open('python.said', 'w').close()).start()
1 + 1`,
    ],
    [
      "javascript",
      `process.stdout.write('1234567\\n'.repeat(${lines}));
setTimeout(() => require('node:fs').writeFileSync('javascript.said', ''), 300);
1 + 1`,
    ],
  ])("a run of %s ends with its result", async (language, code) => {
    const body = { language, cwd: agent.workspace };
    const { contextId } = await agent.post("/api/contexts", body);
    const events = await readLate(language, "POST", "/api/execute/code", { context_id: contextId, code });
    expect(printed(events, "text")).toBe(sevenDigits);
    expect(events.find(({ type }) => type === "result")).toMatchObject({ text: "2" });
    expect(events.at(-1)).toMatchObject({ type: "execution_complete" });
    expect((await agent.call("DELETE", `/api/contexts/${contextId}`)).status).toBe(200);
  });

  const print = (name: string) =>
    `yes 1234567 | head -n ${lines}; (sleep 0.3; touch ${marker(name)}) >/dev/null 2>&1 &`;

  test("a streamed command ends with its status", async () => {
    const body = { command: print("command"), sessionId: "__DISABLE_SESSION__" };
    const events = await readLate("command", "POST", "/api/execute/stream", body);
    expect(printed(events, "data")).toBe(sevenDigits);
    expect(events.at(-1)).toMatchObject({ type: "complete", exitCode: 0 });
  });

  test("a process's log ends with its status", async () => {
    await agent.post("/api/process/start", { command: print("process"), processId: "slow" });
    const events = await readLate("process", "GET", "/api/process/slow/stream");
    expect(printed(events, "data")).toBe(sevenDigits);
    expect(events.at(-1)).toMatchObject({ type: "exit", exitCode: 0 });
  });

  test("a watch tells the last change", async () => {
    const dir = join(agent.workspace, "many");
    mkdirSync(dir);
    const response = await agent.open("POST", "/api/watch", { path: dir });
    for (let file = 0; file < 6_000; file += 1) writeFileSync(join(dir, `f${file}`), "");
    writeFileSync(join(dir, "last"), "");
    let seen = "";
    for await (const chunk of response) {
      seen = (seen + String(chunk)).slice(-10_000);
      if (seen.includes(`${dir}/last`)) break;
    }
    expect(seen).toContain(`${dir}/last`);
    response.destroy();
  });

  test.each([
    ["goes on", "echo end$((1+1))", "end2\r\n"],
    ["exits", "echo end$((1+1)); exit 3", '"code":3'],
  ])("a terminal whose shell %s shows its last lines", async (name, after, last) => {
    const path = name.replace(" ", "-");
    const socket = await agent.connect();
    const terminal = await openWebSocket(socket, `/ws/pty?sessionId=${path}`);
    let shown = (await terminal.next()).toString();
    while (!shown.includes("ready")) shown += (await terminal.next()).toString();
    socket.pause();
    terminal.send(Buffer.from(`(setsid sh -c 'sleep 2; touch ${marker(path)}' &); seq ${lines}; ${after}\r`));
    await said(path);
    socket.resume();
    shown = "";
    while (!shown.includes(last)) shown = (shown + (await terminal.next()).toString()).slice(-20_000);
    expect(shown.includes("end2\r\n")).toBe(true);
    terminal.close();
  });
});
