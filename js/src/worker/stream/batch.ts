import type { Core } from "../../core/types.ts";
import { invalidArgument, shellError } from "../errors.ts";
import type { PreparedEvent } from "./event-log.ts";
import type { EventInput } from "./types.ts";

/** One append, all payloads together, as JSON text. */
export const MAX_BATCH_BYTES = 1024 * 1024;
const MAX_KEY_LENGTH = 512;

const encoder = new TextEncoder();

/**
 * Everything about a batch that can be refused is refused here, before the first write.
 * @throws SandboxError `invalid_argument`, `batch_too_large`, or what `core.validateEvent` throws.
 */
export function prepareBatch(core: Core, events: unknown): PreparedEvent[] {
  if (!Array.isArray(events) || events.length === 0) {
    throw invalidArgument("events", events, "an array with at least one event");
  }
  let bytes = 0;
  const prepared = events.map((event: EventInput) => {
    const one = prepareEvent(core, event);
    bytes += encoder.encode(one.payloadText).byteLength;
    return one;
  });
  if (bytes > MAX_BATCH_BYTES) {
    throw shellError(
      "batch_too_large",
      `a batch of ${events.length} events holds ${bytes} bytes; at most ${MAX_BATCH_BYTES} are allowed: append it in parts`,
      { bytes, limit: MAX_BATCH_BYTES },
    );
  }
  return prepared;
}

function prepareEvent(core: Core, event: EventInput): PreparedEvent {
  if (typeof event !== "object" || event === null) throw invalidArgument("event", event, "an object");
  const { type, payload, idempotencyKey } = event;
  if (idempotencyKey !== undefined && !isKey(idempotencyKey)) {
    throw invalidArgument("idempotencyKey", idempotencyKey, `text of 1 to ${MAX_KEY_LENGTH} characters`);
  }
  core.validateEvent({ type, payload });
  return { type, payloadText: JSON.stringify(payload), idempotencyKey: idempotencyKey ?? null };
}

function isKey(value: unknown): boolean {
  return typeof value === "string" && value.length > 0 && value.length <= MAX_KEY_LENGTH;
}
