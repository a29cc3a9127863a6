/** Events of a stream as lines. */
import type { SandboxEvent, StreamHandle } from "../node/itx.ts";
import { printJson } from "./output.ts";

export function printEvent(event: SandboxEvent, json: boolean | undefined): void {
  if (json === true) printJson(event);
  else {
    const type = event.type.replace("events.iterate.com/", "");
    console.log([event.offset, event.createdAt, type, JSON.stringify(event.payload)].join("\t"));
  }
}

/** Prints every event after the offset, then each new one until the reader is gone. */
export async function followEvents(
  stream: StreamHandle,
  after: number,
  json: boolean | undefined,
): Promise<void> {
  const reader = (await stream.tail({ after })).getReader();
  const stop = () => void reader.cancel();
  process.once("SIGINT", stop);
  process.stdout.once("error", stop);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      printEvent(value, json);
    }
  } finally {
    process.off("SIGINT", stop);
    process.stdout.off("error", stop);
  }
}
