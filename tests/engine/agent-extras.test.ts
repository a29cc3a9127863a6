import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
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

const sh = (command: string, cwd: string): string =>
  execFileSync("bash", ["-ec", command], { cwd }).toString();

describe("git", () => {
  test("clones a branch at a depth, and names what failed", async () => {
    const origin = join(agent.folder, "origin.git");
    mkdirSync(origin);
    sh(
      "git init -q -b main && git config user.email a@b && git config user.name n && echo 1 > f && git add . && git commit -qm one && git commit -q --allow-empty -m two && git switch -qc side && echo 2 > g && git add . && git commit -qm three && git switch -q main",
      origin,
    );
    expect(
      await agent.post("/api/git/checkout", { repoUrl: `file://${origin}`, sessionId: "g" }),
    ).toMatchObject({
      success: true,
      branch: "main",
      targetDir: join(agent.workspace, "origin"),
    });
    const side = await agent.post("/api/git/checkout", {
      repoUrl: `file://${origin}`,
      branch: "side",
      depth: 1,
      targetDir: "shallow",
    });
    expect(side).toMatchObject({ success: true, branch: "side" });
    expect(sh("git rev-list --count HEAD", join(agent.workspace, "shallow")).trim()).toBe("1");
    expect(
      await agent.post("/api/git/checkout", { repoUrl: `file://${origin}`, branch: "none", targetDir: "x" }),
    ).toMatchObject({ code: "GIT_BRANCH_NOT_FOUND", context: { branch: "none" } });
    expect(
      await agent.post("/api/git/checkout", { repoUrl: "file:///no/such/repository.git" }),
    ).toMatchObject({ code: "GIT_REPOSITORY_NOT_FOUND" });
    expect(
      await agent.post("/api/git/checkout", { repoUrl: "http://u:secret@127.0.0.1:1/r.git" }),
    ).toMatchObject({ code: "GIT_NETWORK_ERROR" });
    expect(
      JSON.stringify(await agent.post("/api/git/checkout", { repoUrl: "http://u:secret@127.0.0.1:1/r.git" })),
    ).not.toContain("secret");
    expect(await agent.post("/api/git/checkout", { repoUrl: "--upload-pack=x" })).toMatchObject({
      code: "INVALID_GIT_URL",
    });
  });
});

describe("backups", () => {
  test("excludes and gitignore leave out what they name, and a restore is exact", async () => {
    const dir = join(agent.workspace, "backup");
    mkdirSync(join(dir, "src/node_modules"), { recursive: true });
    mkdirSync(join(dir, ".cache/foo/a/node_modules"), { recursive: true });
    mkdirSync(join(dir, "repo/build"), { recursive: true });
    for (const file of [
      "a.txt",
      "src/node_modules/y.js",
      "src/node_modules.txt",
      ".cache/foo/a/keep.js",
      ".cache/foo/a/node_modules/x.js",
      "repo/kept",
      "repo/build/out",
      "repo/[odd] *.log",
    ]) {
      writeFileSync(join(dir, file), file);
    }
    symlinkSync("../outside", join(dir, "link"));
    writeFileSync(join(dir, "repo/.gitignore"), "build\n*.log\n");
    sh("git init -q", join(dir, "repo"));
    const archivePath = join(agent.folder, "backups/one.sqsh");
    const made = await agent.post("/api/backup/create", {
      dir,
      archivePath,
      gitignore: true,
      excludes: ["node_modules"],
      compression: { format: "lz4", threads: 2 },
    });
    expect(made).toMatchObject({ success: true, archivePath });
    expect(Number(made.sizeBytes)).toBe(readFileSync(archivePath).length);
    const target = join(agent.workspace, "restored");
    mkdirSync(target);
    writeFileSync(join(target, "stale"), "");
    expect(await agent.post("/api/backup/restore", { dir: target, archivePath })).toMatchObject({
      success: true,
      dir: target,
    });
    expect(sh("find . -not -path './repo/.git/*' -not -type d | sort", target).trim().split("\n")).toEqual([
      "./.cache/foo/a/keep.js",
      "./a.txt",
      "./link",
      "./repo/.gitignore",
      "./repo/kept",
      "./src/node_modules.txt",
    ]);
  });

  test("a broken archive is refused and leaves the directory as it was", async () => {
    const dir = join(agent.workspace, "intact");
    mkdirSync(dir);
    writeFileSync(join(dir, "mine"), "1");
    const archivePath = join(agent.folder, "broken.sqsh");
    writeFileSync(archivePath, "no archive");
    expect(await agent.post("/api/backup/restore", { dir, archivePath })).toMatchObject({
      code: "BACKUP_RESTORE_FAILED",
    });
    expect(sh("ls -A", dir).trim()).toBe("mine");
    expect(await agent.post("/api/backup/create", { dir: join(dir, "none"), archivePath })).toMatchObject({
      code: "BACKUP_CREATE_FAILED",
    });
  });

  test("parts are uploaded with their length and their tags come back", async () => {
    const got = new Map<string, string>();
    const server = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += String(chunk);
      });
      request.on("end", () => {
        got.set(`${request.method} ${request.url} ${request.headers["content-length"]}`, body);
        response.setHeader("ETag", `"tag${request.url?.slice(-1)}"`);
        response.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    writeFileSync(join(agent.folder, "parts"), "0123456789");
    const answer = await agent.post("/api/backup/upload-parts", {
      archivePath: join(agent.folder, "parts"),
      parts: [
        { partNumber: 1, url: `${base}/p1`, offset: 0, size: 6 },
        { partNumber: 2, url: `${base}/p2`, offset: 6, size: 4 },
      ],
    });
    await new Promise((resolve) => server.close(resolve));
    expect(answer).toEqual({
      success: true,
      parts: [
        { partNumber: 1, etag: '"tag1"' },
        { partNumber: 2, etag: '"tag2"' },
      ],
    });
    expect(Object.fromEntries(got)).toEqual({ "PUT /p1 6": "012345", "PUT /p2 4": "6789" });
  });
});

describe("watching", () => {
  test("tells creations, changes, moves and deletions below a directory", async () => {
    const dir = join(agent.workspace, "watched");
    mkdirSync(dir);
    const seen: SseEvent[] = [];
    await agent.events("POST", "/api/watch", { path: dir }, (event) => {
      seen.push(event);
      if (event.type === "watching") {
        sh(
          "mkdir sub node_modules; echo 1 > sub/f; echo 1 > node_modules/x; mv sub/f sub/g; rm sub/g; touch end",
          dir,
        );
      }
      return String(event.path).endsWith("/end");
    });
    const told = seen
      .filter((event) => event.type === "event")
      .map((event) => `${event.eventType} ${String(event.path).slice(dir.length)}`);
    expect(seen[0]).toMatchObject({ type: "watching", path: dir });
    expect(told).toContain("create /sub");
    expect(told.some((line) => line.startsWith("create /sub/"))).toBe(true);
    expect(told).toContain("create /end");
    expect(told.join()).not.toContain("node_modules");
    expect(await agent.post("/api/watch", { path: "/etc" })).toMatchObject({ code: "VALIDATION_FAILED" });
    expect(await agent.post("/api/watch", { path: "none" })).toMatchObject({ code: "FILE_NOT_FOUND" });
    expect(await agent.post("/api/watch", { path: dir, include: ["*"], exclude: ["x"] })).toMatchObject({
      code: "VALIDATION_FAILED",
    });
  });

  test("checkChanges compares with a version", async () => {
    const dir = join(agent.workspace, "checked");
    mkdirSync(dir);
    const check = (since?: string) => agent.post("/api/watch/check", { path: dir, since });
    const first = await check();
    expect(first).toMatchObject({ success: true, status: "unchanged" });
    const version = String(first.version);
    expect(await check(version)).toMatchObject({ status: "unchanged", version });
    writeFileSync(join(dir, "f"), "");
    const changed = await check(version);
    expect(changed).toMatchObject({ status: "changed" });
    expect(await check(String(changed.version))).toMatchObject({ status: "unchanged" });
    expect(await check("other:w:1")).toMatchObject({ status: "resync", reason: "restarted" });
    expect(await check(`${version.split(":")[0]}:gone:1`)).toMatchObject({
      status: "resync",
      reason: "expired",
    });
  });
});

describe("the WebSocket transport", () => {
  test("answers many requests at once, streams, and cancels", async () => {
    const socket = await openWebSocket(await agent.connect(), "/ws");
    const send = (message: object) => socket.send(JSON.stringify(message));
    send({
      type: "request",
      id: "slow",
      method: "POST",
      path: "/api/execute",
      body: { command: "sleep 0.3; echo slow", sessionId: "w1" },
    });
    send({ type: "request", id: "ping", method: "GET", path: "/api/ping" });
    send({
      type: "request",
      id: "stream",
      method: "POST",
      path: "/api/execute/stream",
      body: { command: "echo a; echo b", sessionId: "w2" },
    });
    const messages = [];
    for (let done = 0; done < 3; ) {
      const message = JSON.parse((await socket.next()).toString()) as {
        type: string;
        id: string;
        data?: string;
        status?: number;
        body?: { stdout?: string; message?: string };
      };
      messages.push(message);
      if (message.type === "response") done += 1;
    }
    expect(messages.find((message) => message.id === "ping")?.body?.message).toBe("pong");
    expect(messages.find((message) => message.id === "slow")?.body?.stdout).toBe("slow\n");
    const events = messages
      .filter((message) => message.type === "stream")
      .map((message) => JSON.parse(message.data ?? "{}") as SseEvent);
    expect(events.map((event) => event.type)).toContain("complete");
    send({
      type: "request",
      id: "long",
      method: "POST",
      path: "/api/execute/stream",
      body: { command: "sleep 3081", sessionId: "w3" },
    });
    await socket.next();
    send({ type: "cancel", id: "long" });
    await expect
      .poll(() => execFileSync("ps", ["-eo", "args"]).toString().includes("sleep 3081"), { timeout: 5000 })
      .toBe(false);
    send({
      type: "request",
      id: "big",
      method: "POST",
      path: "/api/write",
      body: { path: "big", content: "x".repeat(20_000_000) },
    });
    expect(JSON.parse((await socket.next()).toString())).toMatchObject({
      id: "big",
      status: 200,
      body: { success: true },
    });
    socket.send("no JSON");
    expect(JSON.parse((await socket.next()).toString())).toMatchObject({
      type: "error",
      code: "VALIDATION_FAILED",
    });
    socket.close();
  });

  test("a terminal echoes, resizes, remembers and ends", async () => {
    const read = async (socket: Awaited<ReturnType<typeof openWebSocket>>, until: string) => {
      let text = "";
      while (!text.includes(until)) text += (await socket.next()).toString();
      return text;
    };
    const first = await openWebSocket(await agent.connect(), "/ws/pty?sessionId=t&cols=100&rows=30");
    await read(first, "ready");
    first.send(Buffer.from("stty size; echo mark$((1+1))\r"));
    expect(await read(first, "mark2\r\n")).toContain("30 100");
    first.send(JSON.stringify({ type: "resize", cols: 90, rows: 20 }));
    first.send(Buffer.from("stty size\r"));
    await read(first, "20 90");
    first.close();
    const again = await openWebSocket(await agent.connect(), "/ws/pty?sessionId=t");
    await read(again, "mark2");
    again.send(Buffer.from("exit 3\r"));
    expect(await read(again, '"code":3')).toContain('"type":"exit"');
  });
});

const run = async (body: object) => agent.events("POST", "/api/execute/code", body);
const context = async (language: string) =>
  String(
    (await agent.post("/api/contexts", { language, cwd: agent.workspace, env_vars: { FROM: "env" } }))
      .contextId,
  );

describe("code contexts", () => {
  test("python keeps variables, shows results and errors", async () => {
    const id = await context("python");
    await run({ context_id: id, code: "x = 20\nimport os" });
    const events = await run({ context_id: id, code: "print('hi', os.environ['FROM'])\nx + 1" });
    expect(events.map((event) => event.type)).toEqual(["stdout", "result", "execution_complete"]);
    expect(events[0]).toMatchObject({ text: "hi env\n" });
    expect(events[1]).toMatchObject({ text: "21" });
    const rich = await run({
      context_id: id,
      code: "class H:\n  def _repr_html_(self): return '<b>x</b>'\nH()",
    });
    expect(rich[0]).toMatchObject({ type: "result", html: "<b>x</b>" });
    expect((await run({ context_id: id, code: "{'a': [1, 2]}" }))[0]).toMatchObject({ json: { a: [1, 2] } });
    const failed = await run({ context_id: id, code: "def f():\n  return 1/0\nf()" });
    expect(failed[0]).toMatchObject({
      type: "error",
      ename: "ZeroDivisionError",
      evalue: "division by zero",
    });
    const late = await run({ context_id: id, code: "import time\ntime.sleep(60)", timeout_ms: 300 });
    expect(late.find((event) => event.ename === "TimeoutError")).toBeDefined();
    expect((await run({ context_id: id, code: "x" }))[0]).toMatchObject({ text: "20" });
    expect((await agent.call("GET", "/api/contexts")).json()).toMatchObject({ success: true });
    expect((await agent.call("DELETE", `/api/contexts/${id}`)).json()).toMatchObject({ success: true });
    expect(await agent.post("/api/execute/code", { context_id: id, code: "1" })).toMatchObject({
      code: "CONTEXT_NOT_FOUND",
    });
  });

  test("javascript keeps variables, awaits, shows results and errors", async () => {
    const id = await context("javascript");
    await run({ context_id: id, code: "const x = 20; let y = 1;" });
    const events = await run({ context_id: id, code: "console.log('hi', process.env.FROM); x + y" });
    expect(events.map((event) => event.type)).toEqual(["stdout", "result", "execution_complete"]);
    expect(events[1]).toMatchObject({ text: "21" });
    await run({ context_id: id, code: "const x = 30" });
    expect(
      (await run({ context_id: id, code: "const z = await Promise.resolve(5);\nz + x" }))[0],
    ).toMatchObject({ type: "result" });
    expect((await run({ context_id: id, code: "z" }))[0]).toMatchObject({ text: "5" });
    expect((await run({ context_id: id, code: "({ a: [1, 2] })" }))[0]).toMatchObject({
      json: { a: [1, 2] },
    });
    expect((await run({ context_id: id, code: "null_pointer()" }))[0]).toMatchObject({
      type: "error",
      ename: "ReferenceError",
    });
    const late = await run({ context_id: id, code: "while (true) {}", timeout_ms: 300 });
    expect(late.find((event) => event.ename === "TimeoutError")).toBeDefined();
    expect((await run({ context_id: id, code: "1 + 1" }))[0]).toMatchObject({ text: "2" });
  });

  test("an interpreter that exits says so, and starts afresh", async () => {
    const id = await context("python");
    const events = await run({ context_id: id, code: "import os\nos._exit(3)" });
    expect(events[0]).toMatchObject({ type: "error", ename: "InterpreterExited" });
    expect((await run({ context_id: id, code: "1" }))[0]).toMatchObject({ text: "1" });
    expect(await agent.post("/api/contexts", { language: "cobol" })).toMatchObject({
      code: "VALIDATION_FAILED",
    });
  });
});
