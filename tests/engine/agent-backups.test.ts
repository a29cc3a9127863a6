/** What the engine's own archiver makes holds what mksquashfs makes of the same tree: the agent has it make gzip. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent } from "./agent_client.ts";

let agent: Agent;
beforeAll(async () => {
  agent = await Agent.start();
}, 900_000);
afterAll(async () => {
  await agent.stop();
});

const python = (script: string, ...args: string[]): string =>
  execFileSync("python3", ["-c", script, ...args], { maxBuffer: 1 << 26 }).toString();

/** Every kind of file and every odd name that a directory can hold. */
const nastyTree = `
import os, socket, sys
root = sys.argv[1].encode()
os.makedirs(root)
os.chdir(root)
def file(name, data=b"x", mode=0o644, when=1_000_000_000):
    os.makedirs(os.path.dirname(name) or b".", exist_ok=True)
    with open(name, "wb") as out: out.write(data)
    os.chmod(name, mode)
    os.utime(name, (when, when))
for name in [b"a.txt", b"a.log", b"new\\nline", b" leads", b"trails ", b"non\\xff\\xfeutf", b"back\\\\slash", b"#hash", b"*star", b"[set]",
             b"...", b"-dash", b".hidden", b".hidden.log", b"n" * 255, "\\u00e9\\u4e2d".encode(), b"quote'\\"", b"x+y@z!(w)|^"]:
    file(name, name)
    file(b"sub/dir/" + name, name + b"2")
    file(b"starless/" + name, name + b"3")
file(b"/".join([b"deep" * 20] * 12) + b"/leaf")
file(b"suid", mode=0o4755); file(b"sticky", mode=0o1600); file(b"nothing", mode=0)
file(b"empty", b""); file(b"old", when=0); file(b"late", when=2**32 - 1)
file(b"node_modules/m/index.js"); file(b"sub/node_modules/m/index.js"); file(b"sub/node_modules.txt")
file(b"build/out/a.o"); file(b"sub/build/out/a.o"); file(b"build/keep.c")
block = bytes(range(256)) * 512
for size in [1, 4095, 131071, 131072, 131073, 262144, 700_001]:
    file(b"sized/%d" % size, (os.urandom(size // 2) + block * 6)[:size])
twice = os.urandom(300_000)
file(b"twice/one", twice); file(b"twice/two", twice); file(b"twice/other", twice[:-1] + b"!"); file(b"twice/small", b"s" * 5000)
file(b"twice/small2", b"s" * 5000); file(b"zeros", bytes(400_000)); file(b"zeros-small", bytes(5000))
for holes, size in [(b"holes", 64_000_000), (b"hole-first", 1_000_000), (b"hole-last", 1_000_000)]:
    file(holes, b"")
    with open(holes, "r+b") as out:
        out.truncate(size)
        if holes != b"hole-last": out.seek(size - 10); out.write(b"0123456789")
        if holes != b"hole-first": out.seek(0); out.write(b"begin")
os.link(b"a.txt", b"hard"); os.link(b"a.txt", b"sub/hard"); os.link(b"sized/700001", b"sub/dir/hard-large")
os.symlink(b"../to/../nowhere\\n\\xff", b"dangling"); os.symlink(b"a.txt", b"link"); os.symlink(b"l" * 4000, b"long-link")
os.link(b"link", b"hard-link", follow_symlinks=False)
os.mkfifo(b"fifo"); os.link(b"fifo", b"hard-fifo")
os.mknod(b"char", 0o600 | 0o020000, os.makedev(1, 300)); os.mknod(b"block", 0o600 | 0o060000, os.makedev(259, 70000))
socket.socket(socket.AF_UNIX).bind("socket")
os.mkdir(b"empty-dir", 0o711); os.mkdir(b"closed", 0); file(b"closed/inside")
os.chown(b"suid", 1234, 4_000_000_000); os.chmod(b"suid", 0o6755); os.lchown(b"link", 5, 6); os.chown(b"empty-dir", 7, 8)
for number in range(600): file(b"many/%06d-%s" % (number, b"n" * 120), b"%d" % (number // 2))
for name in [b"a.log", b"empty-dir", b"sized/131073", b"."]:
    os.setxattr(name, b"user.a=b", b"value=\\0\\n" + name); os.setxattr(name, b"trusted.t", b"")
for name in [b"old", b"late"]: os.setxattr(name, b"user.same", b"v" * 3000)
for folder, _, _ in os.walk(b"."): os.utime(folder, (1_50_000_000, 1_50_000_000))
os.chmod(b".", 0o1770); os.chown(b".", 9, 10)
`;

/** A tree of random files: sizes around those of blocks, what repeats and what cannot be compressed, holes, many names and deep ones. */
const randomTree = `
import os, random, sys
root, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
os.makedirs(root)
block = 131072
pool = [rng.randbytes(block) for _ in range(3)]
def size():
    return rng.choice([0, 1, rng.randrange(100), rng.randrange(8192), rng.randrange(block), block - 1, block, block + 1,
                       block * rng.randrange(2, 6), block * rng.randrange(1, 5) + rng.randrange(block)])
def data(length):
    kind = rng.randrange(5)
    if kind == 0: return rng.randbytes(length)
    if kind == 1: return bytes(length)
    if kind == 2: return (b"%d " % rng.randrange(9) * (length // 2 + 1))[:length]
    out = b"".join(rng.choice([*pool, bytes(block), rng.randbytes(block)]) for _ in range(length // block + 1))[:length]
    return out if kind == 3 else out[:length // 2] + rng.randbytes(length - length // 2)
folders = [root]
for _ in range(rng.randrange(40)):
    folder = os.path.join(rng.choice(folders), "d" * rng.randrange(1, 60) + str(rng.randrange(10 ** 6)))
    if len(folder) < 3000 and not os.path.exists(folder): os.mkdir(folder); folders.append(folder)
files = []
for _ in range(rng.choice([0, 5, 300, 1500])):
    path = os.path.join(rng.choice(folders), "f" * rng.randrange(120) + str(rng.randrange(10 ** 9)))
    act = rng.randrange(12)
    if os.path.lexists(path): continue
    if act == 0 and files: os.link(rng.choice(files), path); continue
    if act == 1: os.symlink("t" * rng.randrange(1, 900), path); continue
    with open(path, "wb") as out:
        out.write(data(size()) if rng.randrange(4) == 0 else rng.randbytes(rng.randrange(300)))
        if act == 2: out.seek(rng.randrange(3 * block), 1); out.write(b"end")
        if act == 3: out.truncate(out.tell() + rng.randrange(3 * block))
    os.chmod(path, rng.randrange(0o10000)); os.chown(path, rng.randrange(300), rng.randrange(300))
    if act == 4: os.setxattr(path, "user.a%d" % rng.randrange(50), rng.randbytes(rng.randrange(200)))
    os.utime(path, (rng.randrange(2 ** 32),) * 2)
    files.append(path)
for folder in folders: os.utime(folder, (rng.randrange(2 ** 32),) * 2)
`;
/** Seeds of random trees: the first in CI, many with FULL=1. */
const randomTrees = process.env.FULL === "1" ? 400 : 8;

/** A line for everything in a directory. Links to one file have one number. */
const describeTree = `
import hashlib, os, sys
root = sys.argv[1].encode()
numbers = {}
lines = []
def content(path, status):
    if os.path.islink(path): return os.readlink(path)
    kind = status.st_mode & 0o170000
    if kind in (0o020000, 0o060000): return (os.major(status.st_rdev), os.minor(status.st_rdev))
    if kind != 0o100000: return None
    if status.st_size > 50_000_000 and status.st_blocks > 10_000: return "not sparse"
    with open(path, "rb") as data:
        if status.st_size > 50_000_000: return (status.st_size, data.read(100), data.seek(-20, 2), data.read())
        return hashlib.sha256(data.read()).hexdigest()
def add(path):
    status = os.lstat(path)
    folder = os.path.isdir(path) and not os.path.islink(path)
    attributes = sorted((name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False))
    same = None if folder else numbers.setdefault(status.st_ino, len(numbers))
    lines.append(repr((os.path.relpath(path, root), oct(status.st_mode), status.st_uid, status.st_gid, int(status.st_mtime), status.st_nlink,
                       same, content(path, status), attributes)))
    if folder:
        for name in sorted(os.listdir(path)): add(os.path.join(path, name))
add(root)
print("\\n".join(lines))
`;

/** Everything that the archive holds, as it is when it is extracted. */
function held(archive: string): string[] {
  const folder = `${archive}.out`;
  execFileSync("unsquashfs", ["-quiet", "-no-progress", "-d", folder, archive]);
  const lines = python(describeTree, folder).trim().split("\n");
  rmSync(folder, { recursive: true });
  return lines;
}

interface Options {
  excludes?: string[];
  gitignore?: boolean;
}

async function archived(dir: string, format: string, options: Options = {}): Promise<string> {
  const archivePath = join(agent.folder, "archives", `${format}-${Math.random()}`);
  const made = await agent.post("/api/backup/create", {
    dir,
    archivePath,
    ...options,
    compression: { format, threads: 2 },
  });
  expect(made).toMatchObject({ success: true, archivePath, sizeBytes: statSync(archivePath).size });
  return archivePath;
}

describe("the engine's own archiver", () => {
  let dir: string;
  beforeAll(() => {
    dir = join(agent.workspace, "nasty");
    python(nastyTree, dir);
  });

  const excludes: Record<string, string[]> = {
    nothing: [],
    "a name at any depth": ["node_modules"],
    "a name at the root": ["/build"],
    "a path": ["sub/build/out", "./sub/dir/a.txt", "starless/"],
    "wildcards, which spare hidden names": ["*.log", "a.t?t"],
    "hidden names": [".*"],
    "a wildcard in a path": ["*/dir/*e*", "many/00000[1-4]*", "many/0000[!1-9]9*"],
    "extended patterns": ["@(build|node_modules)", "!(s*|t*|many)/one", "+(a|b).txt"],
    "a pattern and what is below it": ["sub", "sub/dir/a.txt"],
    "quoted and odd names": ["\\*star", "\\[set\\]", "#hash", " leads", "back\\\\slash", "..."],
    "what is not there": ["none", "none/below", "a.txt/below", "../nasty", "[open", "trailing\\"],
    "bytes outside of ASCII": ["\u00e9*", "\u00e9?", "??"],
    everything: ["*", ".*"],
  };
  for (const [name, patterns] of Object.entries(excludes)) {
    test(`holds the same as mksquashfs's, leaving out ${name}`, async () => {
      const [own, reference] = [
        await archived(dir, "lz4", { excludes: patterns }),
        await archived(dir, "gzip", { excludes: patterns }),
      ].map(held);
      expect(own).toEqual(reference);
      if (patterns.length === 0) expect(own).toEqual(python(describeTree, dir).trim().split("\n"));
    });
  }

  test("leaves out what git ignores, whatever its name", async () => {
    const repository = join(dir, "../ignored");
    python(nastyTree, repository);
    writeFileSync(join(repository, ".gitignore"), "build\n[*]star\n*.log\nnew*line\n\\#hash\n");
    execFileSync("git", ["init", "-q"], { cwd: repository });
    const own = held(await archived(repository, "lz4", { gitignore: true }));
    const kept = own.map((line) => line.slice(0, line.indexOf(",")));
    expect(kept).toEqual(expect.arrayContaining([`(b'a.txt'`, `(b'[set]'`]));
    for (const name of ["a.log", "*star", "#hash", "new\\nline", "build", "sub/build", "sub/dir/*star"])
      expect(kept).not.toContain(`(b'${name}'`);
    // mksquashfs cannot be told of a newline.
    rmSync(join(repository, "new\nline"));
    for (const folder of ["sub/dir", "starless"]) rmSync(join(repository, folder, "new\nline"));
    const [again, reference] = [
      await archived(repository, "lz4", { gitignore: true }),
      await archived(repository, "gzip", { gitignore: true }),
    ].map(held);
    expect(again).toEqual(reference);
  });

  test(`holds what ${randomTrees} random trees hold`, { timeout: 3_600_000 }, async () => {
    const folder = join(agent.workspace, "random");
    for (let seed = 1; seed <= randomTrees; seed++) {
      python(randomTree, folder, String(seed));
      const archive = await archived(folder, "lz4");
      expect(held(archive), `seed ${seed}`).toEqual(python(describeTree, folder).trim().split("\n"));
      for (const path of [folder, archive]) rmSync(path, { recursive: true });
    }
  });

  test("takes a hole of any size for nothing, and finds what is behind it", async () => {
    const folder = join(agent.workspace, "holes");
    mkdirSync(folder);
    execFileSync(
      "bash",
      ["-ec", "truncate -s 1T only && echo begin > ends && truncate -s 6G ends && echo end >> ends"],
      { cwd: folder },
    );
    const archive = await archived(folder, "lz4");
    const listed = execFileSync("unsquashfs", ["-lln", archive]).toString();
    expect(listed).toMatch(/ 1099511627776 .*only/);
    expect(listed).toMatch(/ 6442450948 .*ends/);
    const out = `${archive}.out`;
    execFileSync("unsquashfs", ["-quiet", "-no-progress", "-d", out, archive, "ends"]);
    const file = join(out, "ends");
    expect(statSync(file)).toMatchObject({ size: 6_442_450_948 });
    expect(execFileSync("head", ["-c6", file]).toString()).toBe("begin\n");
    expect(execFileSync("tail", ["-c5", file]).toString()).toBe("\0end\n");
    rmSync(out, { recursive: true });
    rmSync(folder, { recursive: true });
  });

  test("archives a tree that changes meanwhile", async () => {
    const folder = join(agent.workspace, "busy");
    const writer = new Worker(
      `const fs = require("node:fs");
      const { parentPort, workerData: folder } = require("node:worker_threads");
      fs.mkdirSync(folder + "/sub", { recursive: true });
      for (let round = 0; ; round++) {
        const name = folder + "/" + (round % 2 ? "sub/" : "") + (round % 97);
        if (round % 3 === 0) fs.rmSync(name, { force: true });
        else fs.writeFileSync(name, Buffer.alloc((round * 7919) % 400_000, String(round)));
        if (round % 50 === 49) {
          fs.rmSync(folder + "/sub", { recursive: true });
          fs.mkdirSync(folder + "/sub");
        }
        if (round === 200) parentPort.postMessage("busy");
      }`,
      { eval: true, workerData: folder },
    );
    try {
      await once(writer, "message");
      for (let round = 0; round < 5; round++)
        expect(held(await archived(folder, "lz4")).length).toBeGreaterThan(1);
    } finally {
      await writer.terminate();
    }
  });

  test("says what is wrong when the archive cannot be written", async () => {
    const archivePath = join(agent.folder, "a-folder");
    mkdirSync(archivePath);
    const body = { dir: agent.workspace, archivePath, compression: { format: "lz4" } };
    expect(await agent.post("/api/backup/create", body)).toMatchObject({
      code: "BACKUP_CREATE_FAILED",
      context: { dir: agent.workspace, exitCode: 1, stderr: expect.stringContaining("Is a directory") },
    });
  });
});
