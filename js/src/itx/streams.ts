import { RpcTarget } from "cloudflare:workers";
import { invalidArgument, shellError } from "../worker/errors.ts";
import { objectStream } from "../worker/stream/ndjson.ts";
import { streamStub } from "../worker/stream/stub.ts";
import type { EventInput, EventPage, StoredEvent } from "../worker/stream/types.ts";
import { onWire } from "../worker/wire.ts";
import { defined, optionalNumber, optionsArgument, stringArgument } from "./arguments.ts";
import type { ItxContext } from "./context.ts";

/** Streams whose events are the system's own record; clients read them and nothing else. */
const RESERVED = ["/", "/sandboxes", "/secrets", "/egress"];

export class Streams extends RpcTarget {
  readonly #context: ItxContext;

  constructor(context: ItxContext) {
    super();
    this.#context = context;
  }

  /** A local address: nothing is read or written, and the stream need not exist. */
  get(path: string): StreamHandle {
    return new StreamHandle(this.#context, path);
  }
}

export class StreamHandle extends RpcTarget {
  readonly #context: ItxContext;
  readonly #path: string;

  constructor(context: ItxContext, path: unknown) {
    super();
    this.#context = context;
    this.#path = stringArgument("path", path);
  }

  /** Events after an offset, oldest first. A stream that does not exist is empty. */
  read(options?: { after?: number; limit?: number }): Promise<EventPage> {
    return onWire(() => {
      const given = optionsArgument("options", options, ["after", "limit"]);
      const after = optionalNumber("after", given.after);
      const limit = optionalNumber("limit", given.limit);
      return this.#stub().read(defined({ after, limit }));
    });
  }

  /** Replays the events after an offset, then follows. */
  tail(options?: { after?: number }): Promise<ReadableStream<StoredEvent | Uint8Array>> {
    return onWire(async () => {
      const given = optionsArgument("options", options, ["after"]);
      const lines = await this.#stub().tail(defined({ after: optionalNumber("after", given.after) }));
      return this.#context.objectStreams ? objectStream<StoredEvent>(lines) : lines;
    });
  }

  /** The event at an offset, once it is there. */
  waitFor(offset: number, timeoutMs?: number): Promise<StoredEvent> {
    return onWire(() => this.#stub().waitFor(offset, optionalNumber("timeoutMs", timeoutMs)));
  }

  /** Appends all events or none; the system's own streams refuse. */
  append(events: EventInput[]): Promise<StoredEvent[]> {
    return onWire(() => {
      if (isReserved(this.#path)) {
        throw shellError(
          "stream_reserved",
          `only the system appends to ${this.#path}; read it, or use a path of your own`,
          {
            path: this.#path,
          },
        );
      }
      if (!Array.isArray(events)) throw invalidArgument("events", events, "an array of events");
      return this.#stub().append(events);
    });
  }

  #stub() {
    const { env, core, projectId } = this.#context;
    return streamStub(env, core, projectId, this.#path);
  }
}

function isReserved(path: string): boolean {
  return RESERVED.some(
    (reserved) => path === reserved || (reserved !== "/" && path.startsWith(`${reserved}/`)),
  );
}
