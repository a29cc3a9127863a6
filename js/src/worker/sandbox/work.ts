/** A call whose answer is a stream is at work until the stream has ended. */

/**
 * Gives a call's answer on, and calls `finish` when there is nothing left of the work: at once, or when the streams in the answer
 * have ended or were cancelled.
 */
export function whenUsed<T>(result: T, finish: () => void, keep: (work: Promise<unknown>) => void): T;
export function whenUsed(
  result: unknown,
  finish: () => void,
  keep: (work: Promise<unknown>) => void,
): unknown {
  const ends: Promise<void>[] = [];
  const answer = passStreams(result, ends);
  if (ends.length === 0) finish();
  else keep(Promise.all(ends).then(finish));
  return answer;
}

function passStreams(result: unknown, ends: Promise<void>[]): unknown {
  if (result instanceof ReadableStream) return pass(result, ends);
  if (!isPlainObject(result)) return result;
  const streams = Object.entries(result).filter(([, value]) => value instanceof ReadableStream);
  if (streams.length === 0) return result;
  const passed = streams.map(([key, value]) => [key, passStreams(value, ends)] as const);
  return { ...result, ...Object.fromEntries(passed) };
}

/** A native stream in between: it is readable over RPC whatever the source was, and a departed reader ends the source. */
function pass(source: ReadableStream, ends: Promise<void>[]): ReadableStream {
  const { readable, writable } = new IdentityTransformStream();
  ends.push(source.pipeTo(writable).catch(() => undefined));
  return readable;
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
