/** What dies by itself is logged with how, and the sandbox's stream says why it stopped. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { eventually, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let itx: Itx;
beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_deaths");
});
afterAll(() => server?.close());

const read = (path: string) => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
};
const parentOf = (pid: number) => Number(/^PPid:\s+(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1]);

/** The first process of the sandbox that runs a command with this marker, as the machine numbers it. */
function initOf(marker: string): number | undefined {
  const found = readdirSync("/proc").find(
    (name) => /^\d+$/.test(name) && read(`/proc/${name}/cmdline`).startsWith(`sleep\0${marker}`),
  );
  if (found === undefined) return undefined;
  let pid = Number(found);
  while (pid > 1 && read(`/proc/${pid}/comm`) !== "sandboxd-init\n") pid = parentOf(pid);
  return pid > 1 ? pid : undefined;
}

async function started(name: string, marker: string): Promise<{ sandbox: SandboxHandle; init: number }> {
  const sandbox = await itx.sandboxes.get(`/sandboxes/${name}`).create();
  await sandbox.exec(`sleep ${marker} >/dev/null 2>&1 &`);
  return { sandbox, init: await eventually("the marker", () => initOf(marker)) };
}

/** The payload of the newest `stopped`; a command makes the object look, where the platform has not told it yet. */
async function stoppedPayload(name: string): Promise<unknown> {
  return eventually("the stop", async () => {
    const { events } = await itx.streams.get(`/sandboxes/${name}`).read({ after: 0, limit: 1000 });
    return events.findLast(({ type }) => type.endsWith("/stopped"))?.payload;
  });
}

/** The structured line about it. */
const logged = (message: RegExp, about: RegExp) =>
  eventually(`a line about ${message}`, () => {
    const line = server.logs.find((text) => text.startsWith('{"') && message.test(text) && about.test(text));
    return line === undefined ? undefined : (JSON.parse(line) as Record<string, unknown>);
  });

test("a container whose first process is killed", async () => {
  const { sandbox, init } = await started("killed", "98761");
  process.kill(init, "SIGKILL");
  expect(await stoppedPayload("killed")).toEqual({ reason: "killed by signal 9" });
  expect(await logged(/ended by itself/, /killed by signal 9/)).toMatchObject({ level: "error" });
  await sandbox.destroy();
});

test("a container whose sandboxd is killed", async () => {
  const { sandbox, init } = await started("launcher", "98762");
  process.kill(parentOf(init), "SIGKILL");
  expect(await stoppedPayload("launcher")).toEqual({ reason: "sandboxd: ended with SIGKILL" });
  expect(await logged(/ended by itself/, /sandboxd: ended with SIGKILL/)).toMatchObject({ level: "error" });
  await sandbox.destroy();
});

test("a sleep that was asked for has no reason, and is no death", async () => {
  const { sandbox } = await started("asleep", "98763");
  const before = server.logs.filter((line) => line.includes("ended by itself")).length;
  await sandbox.sleep();
  expect(await stoppedPayload("asleep")).toEqual({});
  expect(server.logs.filter((line) => line.includes("ended by itself")).length).toBe(before);
  await sandbox.destroy();
});

test("the Workers runtime", async () => {
  await started("runtime", "98764");
  const { workerdPid } = server.server.engine;
  if (workerdPid === undefined) throw new Error("workerd has no pid");
  process.kill(workerdPid, "SIGKILL");
  const line = await logged(/Workers runtime ended by itself/, /SIGKILL/);
  expect(line).toMatchObject({ level: "error", pid: workerdPid, signal: "SIGKILL", containers: 1 });
  await eventually("the next runtime", () => {
    const { workerdPid: next } = server.server.engine;
    return next !== undefined && next !== workerdPid ? true : undefined;
  });
  await server.reconnect();
  itx = await server.itx("prj_deaths");
  const sandbox = itx.sandboxes.get("/sandboxes/runtime");
  expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
  expect(await stoppedPayload("runtime")).toEqual({ reason: "the local runtime that held it ended" });
  await sandbox.destroy();
});
