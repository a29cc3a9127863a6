/** A sandbox's projection as it is now, and then after every change. */
import type { Core, ProjectionState } from "../core/types.ts";
import { type Followable, followStream } from "../worker/stream/follow.ts";
import { encodeLines, HEARTBEAT } from "../worker/stream/ndjson.ts";
import type { StoredEvent } from "../worker/stream/types.ts";

const HEARTBEAT_MS = 15_000;

/** As lines of JSON. The states are folded from the sandbox's stream, from the given one on. */
export function liveState(
  core: Core,
  start: ProjectionState,
  stream: () => Followable,
): ReadableStream<Uint8Array> {
  const projection = core.createProjection(start);
  const abort = new AbortController();
  const events = followStream(stream(), { after: start.offset, signal: abort.signal, reconnect: stream });
  let next: Promise<IteratorResult<StoredEvent, void>> | null = null;
  let last = JSON.stringify(start);
  let first = true;
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      if (first) {
        first = false;
        return controller.enqueue(encodeLines([start]));
      }
      for (;;) {
        next ??= events.next();
        const result = await Promise.race([next, heartbeat()]);
        if (result === "heartbeat") return controller.enqueue(HEARTBEAT.slice());
        next = null;
        if (result.done === true) return controller.close();
        projection.apply([result.value]);
        const state = projection.state();
        const text = JSON.stringify({ ...state, offset: 0 });
        if (text === last) continue;
        last = text;
        return controller.enqueue(encodeLines([state]));
      }
    },
    async cancel() {
      abort.abort();
      projection.free();
    },
  });
}

function heartbeat(): Promise<"heartbeat"> {
  return new Promise((resolve) => setTimeout(resolve, HEARTBEAT_MS, "heartbeat"));
}
