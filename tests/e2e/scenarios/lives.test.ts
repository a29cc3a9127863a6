/** idn-e1, lif-e1, lif-e3, bkp-e2: names, idle timers, keepAlive and snapshots that fail. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxEvent, SandboxHandle } from "../../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let itx: Itx;
beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_lives");
});
afterAll(() => server?.close());

const short = ({ type }: SandboxEvent) => type.replace("events.iterate.com/sandbox/", "");
async function eventsOf(path: string, after = 0): Promise<string[]> {
  const { events } = await itx.streams.get(path).read({ after, limit: 1000 });
  return events.map(short);
}
const count = (events: string[], name: string) => events.filter((event) => event === name).length;
/** The next `stopped` of a sandbox, awaited on its stream. */
const stopped = (sandbox: SandboxHandle) =>
  sandbox.processor.waitUntilEvent({ type: "events.iterate.com/sandbox/stopped", timeoutMs: 60_000 });

test("idn-e1: case matters, everywhere", async () => {
  const upper = await itx.sandboxes.get("/sandboxes/Case").create();
  const lower = await itx.sandboxes.get("/sandboxes/case").create();
  await upper.exec("echo upper > /workspace/who");
  await lower.exec("echo lower > /workspace/who");
  await upper.setEnvVars({ WHO: "upper" });
  await upper.sleep();
  await lower.sleep();
  expect((await upper.exec("cat /workspace/who; echo $WHO")).stdout).toBe("upper\nupper\n");
  expect((await lower.exec("cat /workspace/who; echo $WHO")).stdout).toBe("lower\n\n");
  const { sandboxes } = await itx.sandboxes.list();
  expect(
    sandboxes
      .map(({ path }) => path)
      .filter((path) => /case/i.test(path))
      .sort(),
  ).toEqual(["/sandboxes/Case", "/sandboxes/case"]);
  expect(count(await eventsOf("/sandboxes/Case"), "configured")).toBe(1);
  expect(count(await eventsOf("/sandboxes/case"), "configured")).toBe(0);
  await upper.destroy();
  await lower.destroy();
});

test("lif-e1: the idle timer does not cut work in flight, and fires once after it", async () => {
  const path = "/sandboxes/busy";
  const sandbox = await itx.sandboxes.get(path).create({ sleepAfter: "3s" });
  const result = await sandbox.exec("sleep 10; echo done > /workspace/x; echo done");
  expect(result).toMatchObject({ exitCode: 0, stdout: "done\n" });
  await stopped(sandbox);
  const events = await eventsOf(path);
  expect([count(events, "backup-created"), count(events, "stopped")]).toEqual([1, 1]);
  expect((await sandbox.exec("cat /workspace/x 2>/dev/null; echo up")).stdout).toBe("done\nup\n");
  const after = (await eventsOf(path)).slice(events.length);
  expect(after).toContain("started");
  expect(after).toContain("workspace-restored");
  await sandbox.destroy();
});

test("lif-e3: keepAlive is durable, and can be switched off", async () => {
  const path = "/sandboxes/ka";
  const sandbox = await itx.sandboxes.get(path).create({ keepAlive: true, sleepAfter: "2s" });
  await sandbox.exec("echo 1 > /tmp/mark");
  await new Promise((resolve) => setTimeout(resolve, 8_000));
  expect((await sandbox.exec("cat /tmp/mark")).stdout).toBe("1\n");
  expect(count(await eventsOf(path), "stopped")).toBe(0);
  await sandbox.setKeepAlive(false);
  await stopped(sandbox);
  const events = await eventsOf(path);
  expect(count(events, "backup-created")).toBe(1);
  await sandbox.destroy();
});

test("a workspace that was replaced by a link is not taken for one", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/linked").create({ instanceType: "lite" });
  await sandbox.writeFile("/workspace/file", "kept");
  await sandbox.sleep();
  await sandbox.exec("cd /; rm -rf /workspace; ln -s /etc /workspace");
  await expect(sandbox.sleep()).rejects.toMatchObject({
    code: "snapshot_failed",
    message: expect.stringContaining("is a symbolic link"),
  });
  expect((await sandbox.readFile("/workspace/file")).content).toBe("kept");
  await sandbox.destroy();
});

test("bkp-e2: a snapshot that fails leaves the good one, says so, and lets the container go", async () => {
  const path = "/sandboxes/bad";
  const sandbox = await itx.sandboxes.get(path).create({ instanceType: "standard-1" });
  await sandbox.writeFile("/workspace/file", "v1");
  await sandbox.sleep();
  await sandbox.writeFile("/workspace/file", "v2");
  // There is no place for an archive, so that the snapshot fails half-way inside.
  await sandbox.exec("rm -rf /var/backups && echo > /var/backups");
  await expect(sandbox.sleep()).rejects.toMatchObject({ code: "snapshot_failed", status: 503 });
  const events = await eventsOf(path);
  expect(events.at(-1)).toBe("stopped");
  expect(count(events, "backup-failed")).toBe(1);
  expect((await sandbox.readFile("/workspace/file")).content).toBe("v1");
  await sandbox.destroy();
});
