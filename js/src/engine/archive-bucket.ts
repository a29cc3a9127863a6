/**
 * The bucket as the SDK restores from it. Over rpc it passes an archive's body on as the bucket gives it, and a message of four
 * kilobytes each takes most of a restore's time: here the body comes in large pieces. Over the other transports it holds the whole
 * archive in memory, three times over, and ends in the middle of the restore: here a large one is refused before it begins.
 */

interface BucketEnv {
  BACKUP_BUCKET?: unknown;
  SANDBOX_TRANSPORT?: unknown;
}

/** What the SDK may have to buffer: copies and base64 of it still fit into the memory of a Worker, and into one message. */
export const maxBufferedArchiveBytes = 20 * 1024 * 1024;
const pieceBytes = 256 * 1024;

/** The environment with its BACKUP_BUCKET, if it has one, in this way. */
export function withArchiveBucket<Env extends object>(env: Env): Env {
  const { BACKUP_BUCKET: bucket, SANDBOX_TRANSPORT: transport }: BucketEnv = env;
  if (!isBucket(bucket)) return env;
  return { ...env, BACKUP_BUCKET: archiveBucket(bucket, transport === "rpc") };
}

export function archiveBucket(bucket: R2Bucket, streams: boolean): R2Bucket {
  return new Proxy(bucket, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (name !== "get") return value.bind(target);
      return async (key: string, options?: R2GetOptions) => {
        const object: R2Object | null = await target.get(key, options);
        if (object === null || !hasBody(object) || !key.endsWith(".sqsh")) return object;
        if (streams) return withLargePieces(object);
        if (object.size <= maxBufferedArchiveBytes) return object;
        await object.body.cancel();
        throw tooLarge(object.size);
      };
    },
  });
}

function tooLarge(size: number): Error {
  const message = `archive_too_large: the archive has ${size} bytes, and at most ${maxBufferedArchiveBytes} are restored where the SDK buffers them; set SANDBOX_TRANSPORT=rpc, which streams archives of any size`;
  return Object.assign(new Error(message), { code: "archive_too_large" });
}

function withLargePieces(object: R2ObjectBody): R2ObjectBody {
  let body: ReadableStream | null = null;
  return new Proxy(object, {
    get(target, name) {
      if (name === "body") {
        body ??= inLargePieces(target.body);
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
