/** A server that ends in peace loses nothing: what stood in a workspace is there when it is started again. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.close());

test("sandboxes that run are put to sleep, and wake with what was written last", async () => {
  const paths = ["one", "two", "three", "four", "five", "six"].map((name) => `/sandboxes/${name}`);
  const before = await server.itx("prj_close");
  for (const path of paths) {
    const sandbox = await before.sandboxes.get(path).create({ instanceType: "lite" });
    await sandbox.writeFile("/workspace/last.txt", `last words of ${path}`);
  }
  await server.restart();
  const after = await server.itx("prj_close");
  for (const path of paths) {
    const { events } = await after.streams.get(path).read();
    const names = events.map(({ type }) => type.split("/").at(-1));
    expect(names).toEqual(["created", "started", "sleep-requested", "backup-created", "stopped"]);
    expect((await after.sandboxes.get(path).readFile("/workspace/last.txt")).content).toBe(
      `last words of ${path}`,
    );
  }
  expect(server.server.engine.running()).toHaveLength(paths.length);
});

test("a close without sleep is a crash: the last snapshot counts", async () => {
  const path = "/sandboxes/one";
  const before = await server.itx("prj_close");
  await before.sandboxes.get(path).writeFile("/workspace/later.txt", "later");
  await server.restart({ sleep: false });
  const after = await server.itx("prj_close");
  expect((await after.sandboxes.get(path).exists("/workspace/later.txt")).exists).toBe(false);
  expect((await after.sandboxes.get(path).exists("/workspace/last.txt")).exists).toBe(true);
});

test("a program that is text of the command line opens a project, and ends when it has closed it", () => {
  const dir = mkdtempSync(join(tmpdir(), "itx-text-"));
  try {
    const program = `import { open } from ${JSON.stringify(new URL("../../js/src/node/index.ts", import.meta.url).href)};
const project = await open({ dir: ${JSON.stringify(dir)} });
await project.close();
console.log("closed");`;
    const run = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { encoding: "utf8" });
    expect(run).toMatchObject({ stdout: "closed\n", stderr: "", status: 0 });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
