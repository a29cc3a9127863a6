/** The folder of one server: its keys, made once, and a lock, so that two servers never write the same storage. */
import { createHash, randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, open, readFile, realpath, rename, stat } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { SandboxError } from "../core/error.ts";

export interface Keys {
  /** TOKEN_KEYS: the first signs. */
  tokenKeys: { id: string; secret: string }[];
  /** SECRETS_KEYS: the first seals. */
  secretsKeys: { id: string; key: string }[];
}

export interface StateDir {
  path: string;
  keys: Keys;
  /** For sockets, outside the folder: its own path may be too long for them. */
  runtimeDir: string;
  release(): Promise<void>;
}

/** Makes the folder if there is none. It holds keys and the data of every project: this user alone may enter it. */
export async function makeStateDir(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    throw unusable(path, error);
  });
  // One that was there, and is somebody's own, is left as it is; one that is ours may have been made wider once.
  const keys = await stat(join(path, "keys.json")).catch(() => null);
  if (keys !== null && ((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o700);
}

function unusable(path: string, error: NodeJS.ErrnoException): Error {
  const reasons: Record<string, string> = {
    EEXIST: "is a file",
    ENOTDIR: "is below a file",
    EACCES: "may not be made by this user",
    EROFS: "is on a read-only file system",
  };
  const reason = reasons[error.code ?? ""];
  if (reason === undefined) return error;
  return new SandboxError({
    code: "state_dir_unusable",
    message: `${path} ${reason}; the state of a server is kept in a folder of its own, such as .itx`,
    details: { path, reason: error.code ?? "" },
    status: 400,
    retryable: false,
  });
}

/** Makes the folder if need be, locks it and reads its keys. @throws SandboxError `state_dir_in_use` */
export async function openStateDir(path: string): Promise<StateDir> {
  await makeStateDir(path);
  const real = await realpath(path);
  const name = createHash("sha256").update(real).digest("hex").slice(0, 16);
  const lock = await acquire(`\0iterate-sandboxes-${userInfo().uid}-${name}`, real);
  try {
    const runtimeDir = join(await userRuntimeDir(), name);
    return { path: real, keys: await readKeys(real), runtimeDir, release: () => closed(lock) };
  } catch (error) {
    await closed(lock);
    throw error;
  }
}

/** A folder under the system's temporary one that this user alone can enter. */
export async function userRuntimeDir(): Promise<string> {
  const { uid } = userInfo();
  const path = join(tmpdir(), `itx-${uid}`);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const found = await lstat(path);
  if (!found.isDirectory() || found.uid !== uid || (found.mode & 0o077) !== 0) {
    throw new SandboxError({
      code: "runtime_dir_unsafe",
      message: `${path} must be a folder of this user that nobody else can enter; remove it and start again`,
      details: { path },
      status: 500,
      retryable: false,
    });
  }
  return path;
}

/** An abstract socket: the kernel gives it to one process and takes it back when that one ends, however it ends. */
function acquire(name: string, path: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EADDRINUSE") {
        reject(error);
        return;
      }
      reject(
        new SandboxError({
          code: "state_dir_in_use",
          message: `another server runs on ${path}; end it with \`itx dev --stop\`, or use another folder`,
          details: { path },
          status: 409,
          retryable: true,
        }),
      );
    });
    server.listen(name, () => {
      server.unref();
      resolve(server);
    });
  });
}

/** The keys of a folder, made when it has none. */
export async function readKeys(dir: string): Promise<Keys> {
  const path = join(dir, "keys.json");
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) {
    await makeStateDir(dir);
    return writeKeys(path);
  }
  const keys = parsed(text);
  if (!isKeys(keys)) {
    throw new SandboxError({
      code: "state_dir_damaged",
      message: `${path} does not hold { tokenKeys, secretsKeys }; restore it from a backup: secrets sealed with its keys cannot be read without it`,
      details: { path },
      status: 500,
      retryable: false,
    });
  }
  return keys;
}

/** Nothing of a file that holds keys may come into a message, as the parser's own would bring it. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

async function writeKeys(path: string): Promise<Keys> {
  const keys: Keys = {
    tokenKeys: [{ id: "1", secret: randomBytes(32).toString("base64url") }],
    secretsKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
  };
  // Whole or not at all, and on disk before the first secret is sealed with it.
  const file = await open(`${path}.new`, "w", 0o600);
  await file.writeFile(`${JSON.stringify(keys, null, 2)}\n`);
  await file.sync();
  await file.close();
  await rename(`${path}.new`, path);
  return keys;
}

function isKeys(value: unknown): value is Keys {
  if (typeof value !== "object" || value === null || !("tokenKeys" in value) || !("secretsKeys" in value))
    return false;
  return Array.isArray(value.tokenKeys) && Array.isArray(value.secretsKeys);
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
