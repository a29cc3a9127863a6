/** fil-e2, eng-e2 and the walls: what a sandbox can see, and what one does to another. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

let server: TestServer;
let itx: Itx;
const outside = mkdtempSync(join(tmpdir(), "canary-"));
const canary = join(outside, "CANARY");
const CONTENT = "the canary sings";

beforeAll(async () => {
  writeFileSync(canary, CONTENT);
  server = await startTestServer();
  itx = await server.itx("prj_walls");
});
afterAll(async () => {
  await server?.close();
  rmSync(outside, { recursive: true, force: true });
});

describe("fil-e2: no way of naming a file reaches the host's", () => {
  let sandbox: SandboxHandle;
  beforeAll(async () => {
    sandbox = await itx.sandboxes.get("/sandboxes/jailfs").create();
    await sandbox.exec("ln -s / /workspace/l; mkdir -p /workspace/dir");
  });
  const spellings = [
    canary,
    `../../..${canary}`,
    `/workspace/l${canary}`,
    `/proc/1/root${canary}`,
    `/workspace/%2e%2e${canary}`,
    `/workspace/\0${canary}`,
  ];
  const calls: [string, (path: string) => Promise<unknown>][] = [
    ["readFile", (path) => sandbox.readFile(path)],
    ["readFileStream", async (path) => new Response(await sandbox.readFileStream(path)).text()],
    ["listFiles", (path) => sandbox.listFiles(path.slice(0, -7))],
    ["exists", (path) => sandbox.exists(path)],
    ["writeFile", (path) => sandbox.writeFile(path, "overwritten")],
    ["deleteFile", (path) => sandbox.deleteFile(path)],
    ["renameFile from", (path) => sandbox.renameFile(path, "/workspace/stolen")],
    ["renameFile to", (path) => sandbox.renameFile("/workspace/dir", path)],
    ["moveFile from", (path) => sandbox.moveFile(path, "/workspace/dir/stolen")],
    ["mkdir", (path) => sandbox.mkdir(`${path}/x`, { recursive: true })],
    ["exec", (path) => sandbox.exec("cat CANARY", { cwd: path.slice(0, -7) })],
    ["gitCheckout", (path) => sandbox.gitCheckout("https://nowhere.invalid/x", { targetDir: path })],
  ];
  test.each(calls)("%s", async (_name, call) => {
    for (const path of spellings) {
      const answer = await call(path).then(
        (value) => JSON.stringify(value),
        (error: unknown) =>
          error instanceof Error ? `${error.message} ${JSON.stringify(error)}` : String(error),
      );
      expect(answer, path).not.toContain(CONTENT);
      expect(answer, path).not.toMatch(/\n\s+at /);
    }
    expect(readFileSync(canary, "utf8")).toBe(CONTENT);
  });

  test("exec obeys the same wall", async () => {
    const search = `cat ${canary} /proc/*/root${canary} /etc/shadow; ls ${homedir()} ${process.cwd()}; env`;
    const { stdout } = await sandbox.exec(search);
    expect(stdout).not.toContain(CONTENT);
    expect(stdout).not.toContain("package.json");
    expect(stdout).not.toMatch(/^root:[^:]*:\d+:/m);
    const hostOnly = Object.entries(process.env).filter(
      ([name, value]) => /KEY|TOKEN|SECRET|HOME|PWD|USER/.test(name) && value,
    );
    for (const [name, value] of hostOnly)
      if (name.length > 4 && !["/", "/root", "root"].includes(value ?? ""))
        expect(stdout).not.toContain(`${name}=${value}`);
  });

  test("it is not uid 0 outside, and sees its own processes alone", async () => {
    const { stdout } = await sandbox.exec("cat /proc/self/uid_map; ps -eo pid= | wc -l; cat /proc/1/comm");
    const [map, processes, init] = stdout
      .trim()
      .split("\n")
      .map((line) => line.trim());
    expect(map?.split(/\s+/)[0]).toBe("0");
    expect(Number(map?.split(/\s+/)[1])).toBeGreaterThan(0);
    expect(Number(processes)).toBeLessThan(12);
    expect(init).toBe("sandboxd");
  });
});

describe("eng-e2: one sandbox hurts only itself", () => {
  test("a fork bomb, a memory hog and a disk filler, while the others answer", async () => {
    const names = ["bomb", "hog", "filler", "calm-1", "calm-2"];
    const [bomb, hog, filler, ...calm] = await Promise.all(
      names.map((name) => itx.sandboxes.get(`/sandboxes/${name}`).create({ instanceType: "lite" })),
    );
    if (bomb === undefined || hog === undefined || filler === undefined) throw new Error("five were created");
    const harm = Promise.allSettled([
      bomb.exec("f() { f | f & }; f; sleep 3", { timeout: 15_000 }),
      hog.exec("python3 -c 'x = bytearray(2_000_000_000); print(len(x))'", { timeout: 60_000 }),
      filler.exec("head -c 3000000000 /dev/zero > /workspace/fill; echo $?", { timeout: 60_000 }),
    ]);
    for (let round = 0; round < 5; round++)
      for (const sandbox of calm)
        expect((await sandbox.exec("echo ok", { timeout: 60_000 })).stdout).toBe("ok\n");
    const [, memory, disk] = await harm;
    if (memory?.status === "fulfilled") expect(memory.value.exitCode).not.toBe(0);
    if (disk?.status === "fulfilled") expect(disk.value.stdout).not.toBe("0\n");
    await Promise.all([bomb, hog, filler].map((sandbox) => sandbox.kill()));
    for (const sandbox of [bomb, hog, filler])
      expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
    await Promise.all([bomb, hog, filler, ...calm].map((sandbox) => sandbox.destroy()));
  });
});
