import { decodeLines } from "./ndjson.ts";
import type { StoredEvent } from "./types.ts";

/** What a follower needs of a stream: the stub of its object, or anything that gives the same tail. */
export interface Followable {
  tail(options: { after: number }): Promise<ReadableStream<Uint8Array>>;
}

export interface FollowOptions {
  /** Events after this offset; 0 replays the stream from its start. */
  after?: number;
  signal?: AbortSignal;
  /** A fresh stub after a break: one that saw its object restart may stay broken. */
  reconnect?: () => Followable;
}

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 5_000;

/**
 * Every event of a stream in order, replayed and then live, for as long as somebody asks. A break (the object restarts, the
 * connection is lost) is mended from the last offset seen, so that nothing is missed and nothing comes twice.
 */
export async function* followStream(
  stub: Followable,
  options: FollowOptions = {},
): AsyncGenerator<StoredEvent, void, void> {
  const { signal, reconnect = () => stub } = options;
  const aborted = () => signal?.aborted === true;
  let after = options.after ?? 0;
  let current = stub;
  let delay = FIRST_RETRY_MS;
  while (!aborted()) {
    try {
      const body = await current.tail({ after });
      for await (const event of decodeLines<StoredEvent>(body, signal)) {
        if (event.offset <= after) continue;
        after = event.offset;
        delay = FIRST_RETRY_MS;
        yield event;
      }
    } catch (error) {
      if (aborted()) return;
      if (isRefusal(error)) throw error;
    }
    await pause(delay, signal);
    delay = Math.min(delay * 2, LAST_RETRY_MS);
    current = reconnect();
  }
}

/** A refusal of the call itself will not get better by repeating it. */
function isRefusal(error: unknown): boolean {
  return error instanceof Error && "code" in error && "status" in error && Number(error.status) < 500;
}

function pause(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", done);
  });
}
