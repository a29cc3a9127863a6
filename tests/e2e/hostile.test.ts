/** What hurts a sandbox from inside hurts that sandbox alone, ends in a clear error, and leaves it able to sleep with its workspace. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { eventually, startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let itx: Itx;
let neighbour: SandboxHandle;
beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_hostile");
  neighbour = await itx.sandboxes.get("/sandboxes/neighbour").create();
});
afterAll(() => server?.close());

/** Far above what any of these calls may take beside a fork bomb on a busy machine; only a hang reaches it. */
const bound = 120_000;
const several = 4 * bound;
async function within<T>(what: string, call: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${bound} ms`)), bound);
  });
  return Promise.race([call, late]).finally(() => clearTimeout(timer));
}

/** The code of an error, or null: both are an end. */
const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => null,
    (error: unknown) => (error instanceof Error && "code" in error ? error.code : error),
  );

function processesWith(marker: string): number {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(marker);
    } catch {
      return false;
    }
  }).length;
}

/** Each takes all there is of something and does not end by itself. `marker` stands in the command line of what it starts. */
const hostile: Record<string, { command: string; marker: string }> = {
  "a fork bomb": {
    command: `printf '%s' ':(){ :|:& };:' > /tmp/bomb-71f; bash /tmp/bomb-71f`,
    marker: "bomb-71f",
  },
  "hundreds of shells that fork": {
    command: `for i in $(seq 150); do sh -c 'while : forkers-71f; do true & /bin/true; done' >/dev/null 2>&1 & done`,
    marker: "forkers-71f",
  },
};

const sizes = ["lite", "basic"] as const;
const cases = Object.entries(hostile).flatMap(([name, how]) => sizes.map((size) => ({ name, size, ...how })));

describe.each(cases)("$name in $size", { timeout: several }, ({ name, size, command, marker }) => {
  let sandbox: SandboxHandle;
  beforeAll(async () => {
    sandbox = await itx.sandboxes.get(`/sandboxes/${marker}-${size}`).create({ instanceType: size });
    await sandbox.writeFile("/workspace/kept", name);
  });
  const start = () => within("its start", codeOf(sandbox.exec(command, { timeout: 2_000 })));
  const kept = async () => (await within("the first command", sandbox.exec("cat /workspace/kept"))).stdout;

  test("a command beside it ends, in a result or in an error that says what there is none of", async () => {
    await start();
    expect((await neighbour.exec("echo fine")).stdout).toBe("fine\n");
    for (let round = 0; round < 2; round += 1) {
      const code = await within("a command", codeOf(sandbox.exec("echo alive; ls /workspace")));
      expect([null, "RESOURCE_BUSY"]).toContain(code);
    }
  });

  test("sleep keeps the workspace, and the sandbox wakes without it", async () => {
    await within("sleep", sandbox.sleep());
    await eventually("its processes to be gone", () => (processesWith(marker) === 0 ? true : undefined));
    expect(await kept()).toBe(name);
  });

  test("restart keeps the workspace", async () => {
    await start();
    await within("restart", sandbox.restart());
    expect(await kept()).toBe(name);
    await eventually("its processes to be gone", () => (processesWith(marker) === 0 ? true : undefined));
  });

  test("destroy leaves no process", async () => {
    await start();
    await within("destroy", sandbox.destroy());
    await eventually("its processes to be gone", () => (processesWith(marker) === 0 ? true : undefined));
  });
});

test("no more processes than there may be: a command is refused with the limit", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/full").create({ instanceType: "lite" });
  // Threads count as processes do, and take less of a sixteenth of a processor to start.
  const sleepers = `python3 - <<'EOF'
import os, threading, time
full, filled = os.pipe()
if os.fork() > 0:
    os.read(full, 1)
    os._exit(0)
try:
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
except RuntimeError:
    os.write(filled, b"x")
time.sleep(600)
EOF`;
  await within("the threads", sandbox.exec(sleepers));
  const error: unknown = await within(
    "a command",
    sandbox.exec("echo none").catch((reason: unknown) => reason),
  );
  expect(error).toMatchObject({ code: "RESOURCE_BUSY" });
  expect(String(error)).toMatch(/as many processes and threads as it may, 768/);
  for (const call of [
    () => sandbox.startProcess("sleep 1"),
    () => sandbox.execStream("echo none"),
    () => sandbox.createCodeContext({ language: "python" }),
  ]) {
    expect(await within("a call", codeOf(call()))).toBe("RESOURCE_BUSY");
  }
  await within("restart", sandbox.restart());
  expect((await sandbox.exec("echo again")).stdout).toBe("again\n");
  await sandbox.destroy();
});

test("a memory hog is killed, and what it took is free again for the snapshot", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/hog").create({ instanceType: "lite" });
  await sandbox.writeFile("/workspace/kept", "hog");
  const hog = await within("the hog", sandbox.exec("python3 -c 'x = bytearray(3 << 30)'"));
  expect(hog.exitCode).toBe(137);
  // This one stays, and has as much as it can get.
  const grow = "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'";
  await sandbox.exec(`(while :; do ${grow}; done) >/dev/null 2>&1 &`);
  await within("sleep", sandbox.sleep());
  expect((await sandbox.exec("cat /workspace/kept")).stdout).toBe("hog");
  await sandbox.destroy();
});

test("a full disk says so, and the workspace that filled it is kept", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/disk").create({ instanceType: "lite" });
  await sandbox.writeFile("/workspace/kept", "disk");
  // What has been allocated reads as zeros: the archive is small, and there is no room for that either.
  const fill = "fallocate -l 1800M /workspace/most; head -c 1G /dev/zero >> /workspace/rest";
  const filled = await within("the filler", sandbox.exec(fill));
  expect(filled.exitCode).not.toBe(0);
  expect(filled.stderr).toContain("No space left on device");
  expect(await codeOf(sandbox.writeFile("/workspace/more", "x".repeat(100_000)))).toBe("NO_SPACE");
  expect((await sandbox.exec("echo x > /usr/bin/more || echo none")).stdout).toBe("none\n");
  await neighbour.exec("head -c 100M /dev/zero > /workspace/plenty");
  await within("sleep", sandbox.sleep());
  const woken = await within(
    "the first command",
    sandbox.exec("cat /workspace/kept; stat -c %s /workspace/most"),
  );
  expect(woken.stdout).toBe(`disk${1800 * 1024 * 1024}\n`);
  await sandbox.destroy();
});
