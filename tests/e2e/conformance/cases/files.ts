/** Files, what happens to them, and repositories. */
import assert from "node:assert/strict";
import type { FileStreamEvent, FileWatchSSEEvent } from "@cloudflare/sandbox";
import { type Cases, client, eventWhere, object, refuses, streamRefuses } from "../case.ts";

const missing = { name: "FileNotFoundError", code: "FILE_NOT_FOUND" };
const binary = Uint8Array.from({ length: 70_000 }, (_, index) => (index * 31) & 0xff);
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64");

function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new Blob(chunks.map((chunk) => chunk.slice())).stream();
}

export const files: Cases = {
  "Sandbox.writeFile": {
    "text, with names that have spaces and are not ASCII": client(async ({ sandbox }) => {
      const path = "/workspace/wrîte/ä b 世.txt";
      await sandbox.mkdir("/workspace/wrîte");
      const result = await sandbox.writeFile(path, "héllo\n");
      assert.equal(result.success, true);
      assert.equal(result.path, path);
      assert.equal((await sandbox.exec("cat '/workspace/wrîte/ä b 世.txt'")).stdout, "héllo\n");
    }),
    "bytes in base64": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/bytes", base64(binary), { encoding: "base64" });
      const digest = Buffer.from(await crypto.subtle.digest("SHA-256", binary)).toString("hex");
      assert.match((await sandbox.exec("sha256sum /workspace/bytes")).stdout, new RegExp(`^${digest}`));
    }),
    "a stream of bytes over rpc, and the SDK's refusal of it elsewhere": object(
      async (self, { transport }) => {
        const write = () => self.writeFile("/workspace/streamed", streamOf(binary, binary));
        if (transport !== "rpc") {
          await refuses(write, { name: "Error", message: /only supported on the rpc transport|rpc/i });
          return;
        }
        assert.equal("bytesWritten" in (await write()), true);
        assert.equal((await self.exec("stat -c %s /workspace/streamed")).stdout, "140000\n");
      },
    ),
    "a folder in its place, and one that is missing, are refused": object(async (self) => {
      await refuses(() => self.writeFile("/workspace/none/file", "x"), missing);
      await refuses(() => self.writeFile("/tmp", "x"), { name: "FileSystemError", code: "IS_DIRECTORY" });
    }),
  },
  "Sandbox.readFile": {
    "text, and what it is": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/read.txt", "héllo\n");
      const read = await sandbox.readFile("/workspace/read.txt");
      assert.equal(read.content, "héllo\n");
      assert.equal(read.encoding, "utf-8");
      assert.equal(read.isBinary, false);
      assert.equal(read.size, 7);
      assert.equal(read.mimeType, "text/plain");
    }),
    "bytes come in base64, asked for or not": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/read.bin", base64(binary), { encoding: "base64" });
      for (const options of [{}, { encoding: "base64" as const }]) {
        const read = await sandbox.readFile("/workspace/read.bin", options);
        assert.equal(read.encoding, "base64");
        assert.equal(read.content, base64(binary));
      }
    }),
    "raw bytes over rpc, and the SDK's refusal of them elsewhere": object(async (self, { transport }) => {
      await self.writeFile("/workspace/raw.bin", base64(binary), { encoding: "base64" });
      const read = () => self.readFile("/workspace/raw.bin", { encoding: "none" });
      if (transport !== "rpc") {
        await refuses(read, { name: "Error", message: /rpc/i });
        return;
      }
      const { content, size } = await read();
      assert.equal(size, binary.length);
      assert.deepEqual(new Uint8Array(await new Response(content).arrayBuffer()), binary);
    }),
    "a file that is not there, and a folder": object(async (self) => {
      await refuses(() => self.readFile("/workspace/none"), missing);
      await refuses(() => self.readFile("/tmp"), { name: "FileSystemError", code: "IS_DIRECTORY" });
    }),
  },
  "Sandbox.readFileStream": {
    "the events that collectFile and streamFile read": client(async (world) => {
      const { sandbox, sdk } = world;
      await sandbox.writeFile("/workspace/stream.bin", base64(binary), { encoding: "base64" });
      const { content, metadata } = await sdk.collectFile(
        await sandbox.readFileStream("/workspace/stream.bin"),
      );
      assert.deepEqual(content, binary);
      assert.equal(metadata.size, binary.length);
      await sandbox.writeFile("/workspace/stream.txt", "héllo\n");
      const first = await eventWhere<FileStreamEvent>(
        world,
        await sandbox.readFileStream("/workspace/stream.txt"),
        ({ type }) => type === "metadata",
      );
      assert.deepEqual(first, {
        type: "metadata",
        mimeType: "text/plain",
        size: 7,
        isBinary: false,
        encoding: "utf-8",
      });
    }),
    "a file that is not there": object(async (self, world) => {
      await streamRefuses(world, () => self.readFileStream("/workspace/none"), missing);
    }),
  },
  "Sandbox.mkdir": {
    "a folder, and its parents when asked": client(async ({ sandbox }) => {
      assert.equal((await sandbox.mkdir("/workspace/made")).success, true);
      assert.equal((await sandbox.mkdir("/workspace/deep/er/still", { recursive: true })).recursive, true);
      assert.equal((await sandbox.exec("cd /workspace/deep/er/still && pwd")).exitCode, 0);
      await sandbox.exec("cd /workspace");
    }),
    "without a parent, and over what is there": object(async (self) => {
      await refuses(() => self.mkdir("/workspace/no/parent"), missing);
      await refuses(() => self.mkdir("/tmp"), { name: "FileExistsError", code: "FILE_EXISTS" });
    }),
  },
  "Sandbox.deleteFile": {
    "a file goes": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/delete", "x");
      assert.equal((await sandbox.deleteFile("/workspace/delete")).success, true);
      assert.equal((await sandbox.exists("/workspace/delete")).exists, false);
    }),
    "a file that is not there, and a folder": object(async (self) => {
      await refuses(() => self.deleteFile("/workspace/none"), missing);
      await self.mkdir("/workspace/kept-folder");
      await refuses(() => self.deleteFile("/workspace/kept-folder"), {
        name: "FileSystemError",
        code: "IS_DIRECTORY",
      });
    }),
  },
  "Sandbox.renameFile": {
    "the content is under the new name alone": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/old name", "x");
      const result = await sandbox.renameFile("/workspace/old name", "/workspace/new name");
      assert.equal(result.newPath, "/workspace/new name");
      assert.equal((await sandbox.readFile("/workspace/new name")).content, "x");
      assert.equal((await sandbox.exists("/workspace/old name")).exists, false);
    }),
    "a file that is not there": object(async (self) => {
      await refuses(() => self.renameFile("/workspace/none", "/workspace/some"), missing);
    }),
  },
  "Sandbox.moveFile": {
    "from one file system to another": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/from", "x");
      assert.equal((await sandbox.moveFile("/workspace/from", "/dev/shm/to")).newPath, "/dev/shm/to");
      assert.equal((await sandbox.readFile("/dev/shm/to")).content, "x");
      assert.equal((await sandbox.exists("/workspace/from")).exists, false);
    }),
    "a file that is not there": object(async (self) => {
      await refuses(() => self.moveFile("/workspace/none", "/workspace/some"), missing);
    }),
  },
  "Sandbox.listFiles": {
    "what each entry is; hidden ones and deeper ones when asked": client(async ({ sandbox }) => {
      await sandbox.exec(
        "mkdir -p list/sub && cd list && printf abc > file && chmod 640 file && touch .hidden sub/deep && ln -s file link; cd /workspace",
      );
      const plain = await sandbox.listFiles("/workspace/list");
      assert.deepEqual(plain.files.map(({ name, type }) => `${name} ${type}`).toSorted(), [
        "file file",
        "link symlink",
        "sub directory",
      ]);
      const file = plain.files.find(({ name }) => name === "file");
      assert.equal(file?.size, 3);
      assert.equal(file?.absolutePath, "/workspace/list/file");
      assert.equal(file?.relativePath, "file");
      assert.equal(file?.mode, "rw-r-----");
      assert.deepEqual(file?.permissions, { readable: true, writable: true, executable: false });
      assert(Date.parse(file?.modifiedAt ?? "") > 0);
      const all = await sandbox.listFiles("/workspace/list", { recursive: true, includeHidden: true });
      assert.deepEqual(all.files.map(({ relativePath }) => relativePath).toSorted(), [
        ".hidden",
        "file",
        "link",
        "sub",
        "sub/deep",
      ]);
      assert.equal(all.count, 5);
    }),
    "a folder that is not there, and a file": object(async (self) => {
      await refuses(() => self.listFiles("/workspace/none"), missing);
      await self.writeFile("/workspace/no-folder", "");
      await refuses(() => self.listFiles("/workspace/no-folder"), {
        name: "FileSystemError",
        code: "NOT_DIRECTORY",
      });
    }),
  },
  "Sandbox.exists": {
    "true of files and folders, false of nothing": client(async ({ sandbox }) => {
      await sandbox.writeFile("/workspace/there", "");
      assert.equal((await sandbox.exists("/workspace/there")).exists, true);
      assert.equal((await sandbox.exists("/tmp")).exists, true);
      assert.equal((await sandbox.exists("/workspace/not there")).exists, false);
    }),
  },
  "Sandbox.watch": {
    "settles once it watches, and tells of the change that comes": client(async (world) => {
      const { sandbox } = world;
      await sandbox.mkdir("/workspace/watched/sub", { recursive: true });
      const stream = await sandbox.watch("/workspace/watched", { include: ["*.txt"] });
      await sandbox.writeFile("/workspace/watched/not.bin", "x");
      await sandbox.writeFile("/workspace/watched/sub/new.txt", "x");
      const event = await eventWhere<FileWatchSSEEvent>(world, stream, ({ type }) => type === "event");
      assert(event.type === "event");
      assert.equal(event.eventType, "create");
      assert.match(event.path, /sub\/new\.txt$/);
      assert.equal(event.isDirectory, false);
    }),
    "a folder that is not there, and both lists at once": object(async (self, world) => {
      await streamRefuses(world, () => self.watch("/workspace/none"), missing);
      await streamRefuses(world, () => self.watch("/workspace", { include: ["a"], exclude: ["b"] }), {
        name: "ValidationFailedError",
        code: "VALIDATION_FAILED",
      });
    }),
  },
  "Sandbox.checkChanges": {
    "unchanged, then changed, by the version": client(async ({ sandbox }) => {
      await sandbox.mkdir("/workspace/checked");
      const first = await sandbox.checkChanges("/workspace/checked");
      assert.equal(first.status, "unchanged");
      const same = await sandbox.checkChanges("/workspace/checked", { since: first.version });
      assert.equal(same.status, "unchanged");
      await sandbox.writeFile("/workspace/checked/file", "x");
      const changed = await sandbox.checkChanges("/workspace/checked", { since: first.version });
      assert.equal(changed.status, "changed");
      const unknown = await sandbox.checkChanges("/workspace/checked", { since: "of another life" });
      assert.equal(unknown.status, "resync");
    }),
  },
  "Sandbox.gitCheckout": {
    "a repository over HTTPS, where it is wanted": client(async ({ sandbox }) => {
      await sandbox.exec("git config --global http.sslVerify false");
      const result = await sandbox.gitCheckout("https://git.test/acme/repo", {
        branch: "main",
        depth: 1,
        targetDir: "/workspace/cloned",
      });
      assert.equal(result.success, true);
      assert.equal(result.branch, "main");
      assert.equal(result.targetDir, "/workspace/cloned");
      assert.equal((await sandbox.readFile("/workspace/cloned/README.md")).content, "# A repository\n");
      assert.equal((await sandbox.exec("git -C cloned rev-list --count HEAD")).stdout, "1\n");
    }),
    "a branch, a repository and a URL that are none": object(async (self) => {
      await self.exec("git config --global http.sslVerify false");
      await refuses(
        () => self.gitCheckout("https://git.test/acme/repo", { branch: "none", targetDir: "b1" }),
        {
          name: "GitBranchNotFoundError",
          code: "GIT_BRANCH_NOT_FOUND",
        },
      );
      await refuses(() => self.gitCheckout("https://git.test/acme/none", { targetDir: "b2" }), {
        name: "GitRepositoryNotFoundError",
        code: "GIT_REPOSITORY_NOT_FOUND",
      });
      await refuses(() => self.gitCheckout("--upload-pack=x", { targetDir: "b3" }), {
        name: "InvalidGitUrlError",
        code: "INVALID_GIT_URL",
      });
    }),
  },
};
