import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent } from "./agent_client.ts";

let agent: Agent;
beforeAll(async () => {
  agent = await Agent.start();
}, 900_000);
afterAll(async () => {
  await agent.stop();
});

describe("files", () => {
  test("write and read, text and bytes, names with blanks and letters of all kinds", async () => {
    for (const name of ["plain.txt", " blank .txt", "日本-é\n.txt"]) {
      expect(await agent.post("/api/write", { path: name, content: "héllo\u{1F433}\n" })).toMatchObject({
        success: true,
      });
      expect(await agent.post("/api/read", { path: join(agent.workspace, name) })).toMatchObject({
        content: "héllo\u{1F433}\n",
        encoding: "utf-8",
        isBinary: false,
      });
    }
    const bytes = Buffer.from([0, 1, 2, 255]);
    await agent.post("/api/write", { path: "b.bin", content: bytes.toString("base64"), encoding: "base64" });
    expect(readFileSync(join(agent.workspace, "b.bin"))).toEqual(bytes);
    expect(await agent.post("/api/read", { path: "b.bin" })).toMatchObject({
      content: bytes.toString("base64"),
      encoding: "base64",
      isBinary: true,
      size: 4,
    });
    expect(
      await agent.post("/api/write", { path: "b.bin", content: "AA EC", encoding: "base64" }),
    ).toMatchObject({ code: "VALIDATION_FAILED" });
    expect(await agent.post("/api/write", { path: "b.bin", content: "x", encoding: "utf-16" })).toMatchObject(
      { code: "VALIDATION_FAILED" },
    );
  });

  test("errors carry the SDK's codes", async () => {
    mkdirSync(join(agent.workspace, "folder"));
    expect(await agent.post("/api/read", { path: "none" })).toMatchObject({
      code: "FILE_NOT_FOUND",
      httpStatus: 404,
    });
    expect(await agent.post("/api/read", { path: "folder" })).toMatchObject({ code: "IS_DIRECTORY" });
    expect(await agent.post("/api/write", { path: "none/deep", content: "" })).toMatchObject({
      code: "FILE_NOT_FOUND",
    });
    expect(await agent.post("/api/mkdir", { path: "folder" })).toMatchObject({ code: "FILE_EXISTS" });
    expect(await agent.post("/api/delete", { path: "folder" })).toMatchObject({ code: "IS_DIRECTORY" });
    expect(await agent.post("/api/read", { path: "" })).toMatchObject({ code: "VALIDATION_FAILED" });
    expect(await agent.post("/api/read", { path: "a\0b" })).toMatchObject({ code: "VALIDATION_FAILED" });
    expect((await agent.call("POST", "/api/read", Buffer.from("{"))).status).toBe(400);
    execFileSync("truncate", ["-s", "33554433", join(agent.workspace, "large")]);
    expect(await agent.post("/api/read", { path: "large" })).toMatchObject({
      code: "FILE_TOO_LARGE",
      httpStatus: 413,
    });
    execFileSync("mkfifo", [join(agent.workspace, "pipe")]);
    expect(await agent.post("/api/read", { path: "pipe" })).toMatchObject({ code: "FILESYSTEM_ERROR" });
  });

  test("mkdir, rename, move, exists, delete, permissions", async () => {
    expect(await agent.post("/api/mkdir", { path: "a/b/c", recursive: true })).toMatchObject({
      success: true,
      recursive: true,
    });
    await agent.post("/api/write", { path: "a/b/c/f", content: "x" });
    chmodSync(join(agent.workspace, "a/b/c/f"), 0o755);
    await agent.post("/api/write", { path: "a/b/c/f", content: "yy" });
    expect(statSync(join(agent.workspace, "a/b/c/f")).mode & 0o777).toBe(0o755);
    expect(await agent.post("/api/rename", { oldPath: "a/b/c/f", newPath: "a/g" })).toMatchObject({
      success: true,
    });
    expect(await agent.post("/api/move", { sourcePath: "a/g", destinationPath: "h" })).toMatchObject({
      success: true,
    });
    expect(await agent.post("/api/exists", { path: "h" })).toMatchObject({ exists: true });
    expect(await agent.post("/api/delete", { path: "h" })).toMatchObject({ success: true });
    expect(await agent.post("/api/exists", { path: "h" })).toMatchObject({ exists: false });
    expect(await agent.post("/api/move", { sourcePath: "h", destinationPath: "i" })).toMatchObject({
      code: "FILE_NOT_FOUND",
    });
  });

  test("lists, with hidden files and below, and does not follow links", async () => {
    const folder = join(agent.workspace, "list");
    mkdirSync(join(folder, "sub"), { recursive: true });
    writeFileSync(join(folder, "sub/deep.txt"), "12345");
    writeFileSync(join(folder, ".hidden"), "");
    symlinkSync("/", join(folder, "link"));
    const names = async (options: object) =>
      (
        (await agent.post("/api/list-files", { path: folder, options })).files as {
          relativePath: string;
          type: string;
        }[]
      )
        .map((file) => `${file.type} ${file.relativePath}`)
        .sort();
    expect(await names({})).toEqual(["directory sub", "symlink link"]);
    expect(await names({ recursive: true, includeHidden: true })).toEqual([
      "directory sub",
      "file .hidden",
      "file sub/deep.txt",
      "symlink link",
    ]);
    expect(readlinkSync(join(folder, "link"))).toBe("/");
  });

  test("large files stream both ways in constant memory", async () => {
    const size = 100 << 20;
    const block = Buffer.alloc(size, "0123456789abcdef");
    const put = await agent.call("PUT", `/api/x/file?path=${encodeURIComponent("big file")}`, block);
    expect(put.json()).toMatchObject({ success: true, bytesWritten: size });
    const got = await agent.call("GET", `/api/x/file?path=big%20file`);
    expect(got.headers["content-length"]).toBe(String(size));
    expect(got.bytes.equals(block)).toBe(true);
    const part = await agent.call("GET", "/api/x/file?path=big%20file&offset=16&length=4");
    expect(part.bytes.toString()).toBe("0123");
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${agent.pid}/status`, "utf8"))?.[1];
    expect(Number(peak)).toBeLessThan(80_000);
  });

  test("a stream of a file's events joins to the file", async () => {
    const bytes = Buffer.from(Array.from({ length: 200_001 }, (_, index) => (index * 7) & 255));
    writeFileSync(join(agent.workspace, "s.bin"), bytes);
    const events = await agent.events("POST", "/api/read/stream", { path: "s.bin" });
    expect(events[0]).toMatchObject({
      type: "metadata",
      isBinary: true,
      encoding: "base64",
      size: bytes.length,
    });
    const joined = Buffer.concat(
      events
        .filter((event) => event.type === "chunk")
        .map((event) => Buffer.from(String(event.data), "base64")),
    );
    expect(joined.equals(bytes)).toBe(true);
    expect(events.at(-1)).toMatchObject({ type: "complete", bytesRead: bytes.length });
    const text = "日本語\n".repeat(50_000);
    writeFileSync(join(agent.workspace, "s.txt"), text);
    const pieces = await agent.events("POST", "/api/read/stream", { path: "s.txt" });
    expect(
      pieces
        .filter((event) => event.type === "chunk")
        .map((event) => event.data)
        .join(""),
    ).toBe(text);
  });
});
