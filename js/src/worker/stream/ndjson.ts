/** Values as lines of JSON in a stream of bytes: the only kind of stream that crosses service bindings and capnweb alike. */

const encoder = new TextEncoder();

/** An empty line: says that the connection lives, and makes a departed reader noticed. */
export const HEARTBEAT = encoder.encode("\n");

export function encodeLines(values: readonly unknown[]): Uint8Array {
  return encoder.encode(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
}

class LineReader<T> {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #pending: T[] = [];
  #rest = "";

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#reader = stream.getReader();
  }

  async next(): Promise<{ done: true } | { done: false; value: T }> {
    for (;;) {
      const value = this.#pending.shift();
      if (value !== undefined) return { done: false, value };
      const chunk = await this.#reader.read();
      if (chunk.done) return { done: true };
      const lines = (this.#rest + this.#decoder.decode(chunk.value, { stream: true })).split("\n");
      this.#rest = lines.pop() ?? "";
      this.#pending = lines.filter((line) => line !== "").map((line): T => JSON.parse(line));
    }
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }
}

/** The values of such a stream; leaving the loop, or aborting, cancels it. */
export async function* decodeLines<T>(
  stream: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<T, void, void> {
  const lines = new LineReader<T>(stream);
  const abort = () => void lines.cancel();
  signal?.addEventListener("abort", abort);
  try {
    for (;;) {
      const line = await lines.next();
      if (line.done || signal?.aborted === true) return;
      yield line.value;
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    await lines.cancel();
  }
}

/** The same values as a stream of objects, which capnweb carries and service bindings do not. */
export function objectStream<T>(stream: ReadableStream<Uint8Array>): ReadableStream<T> {
  const lines = new LineReader<T>(stream);
  return new ReadableStream<T>(
    {
      async pull(controller) {
        const line = await lines.next();
        if (line.done) controller.close();
        else controller.enqueue(line.value);
      },
      cancel: () => lines.cancel(),
    },
    { highWaterMark: 0 },
  );
}
