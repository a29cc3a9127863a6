/**
 * `npm run demo`: the main job of a sandbox from its creation to its retirement, on real workerd and the embedded engine.
 * Every step checks what it did; the first one that is off ends the demo with a non-zero status.
 */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import color from "picocolors";
import { open, type Project, type SandboxHandle } from "../js/src/node/index.ts";
import { Steps, table } from "./demo-steps.ts";

const PATH = "/sandboxes/main";
const stateDir = await mkdtemp(join(tmpdir(), "iterate-sandboxes-demo-"));
const steps = new Steps();
const picture = randomBytes(64 * 1024);
let project: Project | undefined;

async function refused(call: () => Promise<unknown>, code: string): Promise<string> {
  const error: unknown = await call().then(
    () => assert.fail(`expected a refusal with ${code}, but the call succeeded`),
    (reason: unknown) => reason,
  );
  assert(error instanceof Error);
  assert.equal("code" in error ? error.code : undefined, code, error.message);
  return error.message;
}

async function firstLife(itx: Project): Promise<SandboxHandle> {
  const sandbox = await steps.run("create /sandboxes/main as basic", () =>
    itx.sandboxes.get(PATH).create({ instanceType: "basic" }),
  );
  await steps.run("create it again: refused", () =>
    refused(() => itx.sandboxes.get(PATH).create(), "sandbox_exists"),
  );
  await steps.run("use /sandboxes/nope: refused, and nothing is left behind", async () => {
    const message = await refused(
      () => itx.sandboxes.get("/sandboxes/nope").exec("true"),
      "sandbox_not_found",
    );
    const { events } = await itx.streams.get("/sandboxes/nope").read();
    assert.equal(events.length, 0);
    return message;
  });
  await steps.run("exec: the first command boots the container", async () => {
    const { stdout, exitCode } = await sandbox.exec("echo hello from $(uname -s), uid $(id -u)");
    assert.equal(exitCode, 0);
    return stdout.trim();
  });
  await steps.run("write files, a git repository and a node_modules", async () => {
    await sandbox.writeFile("/workspace/notes.md", "# Notes\nkept like a pet: ä 猫 🐈\n");
    await sandbox.writeFile("/workspace/picture.bin", picture.toString("base64"), { encoding: "base64" });
    const made = await sandbox.exec(
      [
        "set -e; mkdir -p /workspace/app/node_modules/left && cd /workspace/app",
        "echo 'module.exports = 1' > node_modules/left/index.js",
        "git init -q . && echo 'console.log(1)' > app.js && git add app.js && git commit -qm 'First'",
        "git log --format=%s",
      ].join("\n"),
    );
    assert.equal(made.exitCode, 0, made.stderr);
    return `git log: ${made.stdout.trim()}`;
  });
  await steps.run("setEnvVars GREETING", () => sandbox.setEnvVars({ GREETING: "hello again" }));
  return sandbox;
}

async function sleepAndWake(itx: Project, sandbox: SandboxHandle): Promise<void> {
  await steps.run("sleep: snapshot /workspace, then the container goes", () => sandbox.sleep());
  await steps.run("the container is gone", async () => {
    const state = await sandbox.processor.snapshot();
    assert.equal(state.running, false);
    assert.equal(itx.server.engine.running().length, 0);
    return `status ${state.status}, snapshot ${state.lastBackupId}`;
  });
  await steps.run("exec wakes it: every file is back, byte for byte", () => filesAreBack(sandbox));
  await steps.run("the variable survived the restart", async () => {
    const { stdout } = await sandbox.exec('echo "$GREETING"');
    assert.equal(stdout, "hello again\n");
    return stdout.trim();
  });
}

async function filesAreBack(sandbox: SandboxHandle): Promise<string> {
  const { content } = await sandbox.readFile("/workspace/notes.md");
  assert.equal(content, "# Notes\nkept like a pet: ä 猫 🐈\n");
  const sum = await sandbox.exec("sha256sum /workspace/picture.bin | cut -d' ' -f1");
  assert.equal(sum.stdout.trim(), createHash("sha256").update(picture).digest("hex"));
  const git = await sandbox.exec(
    "cd /workspace/app && git status --porcelain --untracked-files=no && git log --format=%s",
  );
  assert.equal(git.stdout.trim(), "First", git.stderr);
  const left = await sandbox.exec("ls -d /workspace/app/node_modules");
  assert.notEqual(left.exitCode, 0, "node_modules must not be in a snapshot");
  return "notes.md, picture.bin and the repository are back; node_modules was left out";
}

async function serverRestart(): Promise<SandboxHandle> {
  await steps.run("stop the server", async () => {
    await project?.close();
    project = undefined;
  });
  project = await steps.run("start it again on the same folder", () => open({ dir: stateDir }));
  const sandbox = project.sandboxes.get(PATH);
  await steps.run("sandboxes, streams, snapshots and records are all there", async () => {
    const { content } = await sandbox.readFile("/workspace/notes.md");
    assert.match(content, /kept like a pet/);
    const { events } = await sandbox.events();
    assert(events.length >= 6);
    return `${events.length} events, and the files`;
  });
  return sandbox;
}

async function lastLife(itx: Project, sandbox: SandboxHandle): Promise<void> {
  await steps.run("list()", async () => {
    const { sandboxes } = await itx.sandboxes.list();
    assert.deepEqual(
      sandboxes.map(({ path, instanceType }) => ({ path, instanceType })),
      [{ path: PATH, instanceType: "basic" }],
    );
    return table(
      ["path", "type", "status"],
      sandboxes.map((row) => [row.path, row.instanceType, row.status]),
    );
  });
  await steps.run("destroy: for good", () => sandbox.destroy());
  await steps.run("the name is retired for ever", () =>
    refused(() => itx.sandboxes.get(PATH).create({ instanceType: "basic" }), "sandbox_destroyed"),
  );
  await steps.run("the sandbox's event stream", async () => {
    const { events } = await itx.streams.get(PATH).read({ limit: 1000 });
    assert.equal(events.at(-1)?.type, "events.iterate.com/sandbox/destroyed");
    return table(
      ["#", "event", "payload"],
      events.map((event) => [
        String(event.offset),
        event.type.replace("events.iterate.com/", ""),
        JSON.stringify(event.payload).slice(0, 60),
      ]),
    );
  });
}

let failed = false;
try {
  project = await steps.run("start workerd and the embedded engine", () => open({ dir: stateDir }));
  const sandbox = await firstLife(project);
  await sleepAndWake(project, sandbox);
  const again = await serverRestart();
  await lastLife(project, again);
} catch (error) {
  failed = true;
  console.error(color.red(error instanceof Error ? error.message : String(error)));
} finally {
  await project?.close();
  await rm(stateDir, { recursive: true, force: true });
}
steps.printTimings();
console.log(failed ? color.red("The demo failed.") : color.green("Everything held."));
process.exit(failed ? 1 : 0);
