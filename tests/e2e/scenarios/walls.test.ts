/** fil-e2 and the walls: what a sandbox can see. What one does to another is in tests/engine/launcher-limits. */
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
    // Its own shadow names the users of the image, and holds no hash of a password.
    expect(stdout).not.toMatch(/^[^:\n]+:\$/m);
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
    expect(init).toBe("sandboxd-init");
  });
});
