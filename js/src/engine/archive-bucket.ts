/**
 * The bucket as the SDK keeps archives in it. What it takes from a container comes as base64 in events, decoded by the object's own
 * JavaScript with no limit on what waits: on the embedded engine the bucket fetches an archive itself, as one body that the runtime
 * carries in constant memory. What it brings back over rpc goes in base64 again, as fast as the bucket gives it: on the embedded engine
 * the bucket places the archive itself, and the SDK sends no more than the name by which the host knows what stands there. Elsewhere a
 * message of four kilobytes each would take most of a restore's time: the body comes in large pieces. Over the other transports the SDK
 * holds a whole archive in memory, three times over, and ends in the middle of the restore: a large one is refused before it begins.
 */
import type { EngineEnv } from "./container.ts";
import { engineHeader } from "./protocol.ts";

interface BucketEnv extends Pick<EngineEnv, "ENGINE"> {
  BACKUP_BUCKET?: unknown;
  SANDBOX_TRANSPORT?: unknown;
}

/** What the SDK may have to buffer: copies and base64 of it still fit into the memory of a Worker, and into one message. */
export const maxBufferedArchiveBytes = 20 * 1024 * 1024;
const pieceBytes = 256 * 1024;
/** Where the SDK's server listens, and how it keys an archive that it has made at `/var/backups/<id>.sqsh`. */
const serverPort = 3000;
const archiveKey = /^backups\/([^/]+)\/data\.sqsh$/;

type Value = Parameters<R2Bucket["put"]>[1];
type Fetch = (url: string, init?: RequestInit) => Promise<Response>;

/** How much of the SDK's own work with archives goes on, by object. Whoever else asks the bucket gets what it has. */
const carrying = new WeakMap<object, number>();

/** Does work in which the SDK takes an archive out of a container or brings one in. */
export async function carryingArchives<T>(ctx: object, work: () => Promise<T>): Promise<T> {
  carrying.set(ctx, (carrying.get(ctx) ?? 0) + 1);
  try {
    return await work();
  } finally {
    carrying.set(ctx, (carrying.get(ctx) ?? 1) - 1);
  }
}

/** The environment with its BACKUP_BUCKET, if it has one, in this way while archives are carried. */
export function withArchiveBucket<Env extends object>(env: Env, ctx: DurableObjectState): Env {
  const { BACKUP_BUCKET: bucket, SANDBOX_TRANSPORT: transport, ENGINE: engine }: BucketEnv = env;
  if (!isBucket(bucket)) return env;
  const fetchInside: Fetch = async (url, init) => {
    if (ctx.container === undefined) throw new Error("the container is not running");
    return ctx.container.getTcpPort(serverPort).fetch(url, init);
  };
  const inside = engine === undefined ? null : fetchInside;
  const carries = () => (carrying.get(ctx) ?? 0) > 0;
  return { ...env, BACKUP_BUCKET: archiveBucket(bucket, transport === "rpc", inside, carries) };
}

function archiveBucket(
  bucket: R2Bucket,
  streams: boolean,
  inside: Fetch | null,
  carries: () => boolean,
): R2Bucket {
  return new Proxy(bucket, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (!carries()) return value.bind(target);
      if (name === "put" && inside !== null) {
        return (key: string, given: Value, options?: R2PutOptions) =>
          put(target, inside, key, given, options);
      }
      if (name !== "get") return value.bind(target);
      return async (key: string, options?: R2GetOptions) => {
        const object: R2Object | null = await target.get(key, options);
        if (object === null || !hasBody(object) || !key.endsWith(".sqsh")) return object;
        if (streams) {
          const id = archiveKey.exec(key)?.[1];
          const placed = inside !== null && id !== undefined;
          return withBody(object, placed ? (body) => placing(body, inside, id) : inLargePieces);
        }
        if (object.size <= maxBufferedArchiveBytes) return object;
        await object.body.cancel();
        throw tooLarge(object.size);
      };
    },
  });
}

async function put(
  bucket: R2Bucket,
  inside: Fetch,
  key: string,
  given: Value,
  options?: R2PutOptions,
): Promise<R2Object | null> {
  const id = archiveKey.exec(key)?.[1];
  if (id === undefined || !(given instanceof ReadableStream)) return bucket.put(key, given, options);
  // The SDK's own way is given up; what it has begun to send ends with this.
  given.cancel().catch(() => undefined);
  const response = await inside(archiveUrl(id));
  if (!response.ok || response.body === null) {
    throw new Error(
      `the archive of ${id} cannot be read (status ${response.status}): ${await response.text()}`,
    );
  }
  return bucket.put(key, response.body, options);
}

/** The file of an archive, as the agent serves and takes it. */
function archiveUrl(id: string): string {
  return `http://localhost/api/x/file?${new URLSearchParams({ path: `/var/backups/${id}.sqsh` })}`;
}

/** Whoever begins to read has the archive placed, and reads the name by which the host knows it. */
function placing(archive: ReadableStream, inside: Fetch, id: string): ReadableStream<Uint8Array> {
  const name = crypto.randomUUID();
  const source: UnderlyingSource<Uint8Array> = {
    async pull(controller) {
      const headers = { [engineHeader.placed]: name };
      const response = await inside(archiveUrl(id), { method: "PUT", body: archive, headers });
      const answer = await response.text();
      if (!response.ok)
        throw new Error(`the archive of ${id} cannot be placed (status ${response.status}): ${answer}`);
      controller.enqueue(new TextEncoder().encode(name));
      controller.close();
    },
    cancel: (reason) => archive.cancel(reason),
  };
  // Not before somebody reads: the container may not run yet.
  return new ReadableStream(source, { highWaterMark: 0 });
}

function tooLarge(size: number): Error {
  const message = `archive_too_large: the archive has ${size} bytes, and at most ${maxBufferedArchiveBytes} are restored where the SDK buffers them; set SANDBOX_TRANSPORT=rpc, which streams archives of any size`;
  return Object.assign(new Error(message), { code: "archive_too_large" });
}

function withBody(object: R2ObjectBody, make: (body: ReadableStream) => ReadableStream): R2ObjectBody {
  let body: ReadableStream | null = null;
  return new Proxy(object, {
    get(target, name) {
      if (name === "body") {
        body ??= make(target.body);
        return body;
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function inLargePieces(stream: ReadableStream): ReadableStream<Uint8Array> {
  const reader = stream.getReader({ mode: "byob" });
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.readAtLeast(pieceBytes, new Uint8Array(pieceBytes));
      if (value !== undefined && value.byteLength > 0) controller.enqueue(value);
      if (done) controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function hasBody(object: R2Object): object is R2ObjectBody {
  return "body" in object && object.body instanceof ReadableStream;
}

function isBucket(value: unknown): value is R2Bucket {
  return typeof value === "object" && value !== null && "get" in value && "put" in value;
}
