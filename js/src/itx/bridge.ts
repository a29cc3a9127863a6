/** Arguments on their way from a client's transport into Workers RPC. */

/**
 * A client's callbacks arrive as stubs of its transport, which end with the call they came with, and its streams as streams that
 * only JavaScript can read. Both are made into what Workers RPC carries, and callbacks into what outlives the call. `calls`
 * collects what is on its way to the client's callbacks.
 */
export function bridgeArguments(values: readonly unknown[], calls: Promise<unknown>[] = []): unknown[] {
  const bridge = (value: unknown): unknown => {
    if (typeof value === "function") return bridgeCallback(value, calls);
    if (value instanceof ReadableStream) return bridgeStream(value);
    if (Array.isArray(value)) return value.map(bridge);
    if (isPlainObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, bridge(member)]));
    }
    return value;
  };
  return values.map(bridge);
}

function bridgeCallback(callback: object, calls: Promise<unknown>[]): (...values: unknown[]) => unknown {
  const held = hold(callback);
  return (...values) => {
    const answer = Promise.resolve(Reflect.apply(held, undefined, values));
    calls.push(answer.catch(() => undefined));
    return answer;
  };
}

type Callback = (...values: unknown[]) => unknown;

/** A second reference to a stub keeps it when the first ends. */
function hold(callback: object): Callback {
  const duplicate: unknown =
    "dup" in callback && typeof callback.dup === "function" ? callback.dup() : callback;
  if (typeof duplicate !== "function") throw new TypeError("a callback's duplicate cannot be called");
  return (...values) => Reflect.apply(duplicate, undefined, values);
}

function bridgeStream(stream: ReadableStream<unknown>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const bytes = new TransformStream<unknown, Uint8Array>({
    transform(chunk, controller) {
      if (typeof chunk === "string") controller.enqueue(encoder.encode(chunk));
      else if (chunk instanceof Uint8Array) controller.enqueue(chunk);
      else controller.error(new TypeError("a stream of content must hold bytes or text"));
    },
  });
  return stream.pipeThrough(bytes).pipeThrough(new IdentityTransformStream());
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
