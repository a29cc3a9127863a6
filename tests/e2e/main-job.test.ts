import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx } from "../../js/src/node/index.ts";
import { eventually, refusal, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let itx: Itx;
beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_main");
});
afterAll(() => server?.close());

test("a sandbox is created, used, put to sleep, woken and destroyed", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/main").create({ instanceType: "basic" });
  expect(await refusal(() => itx.sandboxes.get("/sandboxes/main").create())).toBe("sandbox_exists");
  expect(await sandbox.exec("echo out; echo err >&2; exit 3")).toMatchObject({
    stdout: "out\n",
    stderr: "err\n",
    exitCode: 3,
  });
  await sandbox.writeFile("/workspace/notes.md", "kept: \u00e4 \u732b\n");
  await sandbox.exec("mkdir -p node_modules && echo x > node_modules/x && echo y > /tmp/y");
  await sandbox.setEnvVars({ GREETING: "hello" });
  expect(server.server.engine.running()).toHaveLength(1);

  await sandbox.sleep();
  expect(server.server.engine.running()).toHaveLength(0);
  expect((await sandbox.processor.snapshot()).status).toBe("stopped");

  expect((await sandbox.exec("cat notes.md; echo $GREETING; ls -A")).stdout).toBe(
    "kept: \u00e4 \u732b\nhello\nnotes.md\n",
  );
  expect((await sandbox.exec("cat /tmp/y")).exitCode).not.toBe(0);

  await sandbox.destroy();
  expect(server.server.engine.running()).toHaveLength(0);
  expect(await refusal(() => sandbox.exec("true"))).toBe("sandbox_destroyed");
  expect(await refusal(() => itx.sandboxes.get("/sandboxes/main").create())).toBe("sandbox_destroyed");
});

test("a name that was never created is refused and leaves nothing behind", async () => {
  expect(await refusal(() => itx.sandboxes.get("/sandboxes/nope").exec("true"))).toBe("sandbox_not_found");
  expect(await itx.streams.get("/sandboxes/nope").read()).toMatchObject({ events: [], head: 0 });
});

test("everything is there after the server was stopped and started", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/lasting").create();
  await sandbox.writeFile("/workspace/a.txt", "lasting");
  await sandbox.sleep();
  const before = await itx.streams.get("/sandboxes/lasting").read();
  await server.restart();
  itx = await server.itx("prj_main");
  const again = itx.sandboxes.get("/sandboxes/lasting");
  expect(await itx.streams.get("/sandboxes/lasting").read()).toEqual(before);
  expect((await again.readFile("/workspace/a.txt")).content).toBe("lasting");
});

test("a runtime that is killed comes back at the same address, and the next command works", async () => {
  const path = "/sandboxes/survivor";
  const sandbox = await itx.sandboxes.get(path).create();
  await sandbox.writeFile("/workspace/a.txt", "survives");
  await sandbox.sleep();
  await sandbox.exec("true");
  const { engine, url } = server.server;
  const pid = engine.workerdPid;
  if (pid === undefined) throw new Error("the runtime has no pid");
  process.kill(pid, "SIGKILL");
  await eventually("another runtime", () => (server.server.engine.workerdPid === pid ? undefined : true));
  expect(server.server.engine.running()).toHaveLength(0);
  expect(server.url).toBe(url);
  await server.reconnect();
  itx = await server.itx("prj_main");
  expect((await itx.sandboxes.get(path).readFile("/workspace/a.txt")).content).toBe("survives");
});
