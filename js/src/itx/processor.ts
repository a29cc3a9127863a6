import { RpcTarget } from "cloudflare:workers";
import type { ProjectionState } from "../core/types.ts";
import { invalidArgument, shellError } from "../worker/errors.ts";
import { followStream } from "../worker/stream/follow.ts";
import type { StoredEvent } from "../worker/stream/types.ts";
import { onWire } from "../worker/wire.ts";
import { optionalNumber, optionalString, optionsArgument } from "./arguments.ts";
import type { SandboxTarget } from "./sandbox-target.ts";

const DEFAULT_WAIT_MS = 30_000;
const TYPE_PREFIX = "events.iterate.com/sandbox/";

export interface WaitOptions {
  /** `started` or the whole type. */
  type?: string;
  /** The first offset that counts; 1 without it. */
  offset?: number;
  timeoutMs?: number;
}

/** What the sandbox's events add up to, as its object has folded them. */
export class Processor extends RpcTarget {
  readonly #target: SandboxTarget;

  constructor(target: SandboxTarget) {
    super();
    this.#target = target;
  }

  snapshot(): Promise<ProjectionState> {
    return onWire(async () => (await this.#target.object()).projectionSnapshot());
  }

  /**
   * The first event of a type at or after an offset, as soon as it is there and folded.
   * @throws SandboxError `wait_timeout`
   */
  waitUntilEvent(options?: WaitOptions): Promise<StoredEvent> {
    return onWire(async () => {
      const given = optionsArgument("options", options, ["type", "offset", "timeoutMs"]);
      const type = optionalString("type", given.type);
      const offset = optionalNumber("offset", given.offset) ?? 1;
      const timeoutMs = optionalNumber("timeoutMs", given.timeoutMs) ?? DEFAULT_WAIT_MS;
      if (!Number.isInteger(offset) || offset < 1)
        throw invalidArgument("offset", offset, "a whole number from 1");
      const object = await this.#target.object();
      const event = await this.#first(type, offset, timeoutMs);
      await object.projectionWaitUntil({ offset: event.offset, timeoutMs });
      return event;
    });
  }

  async #first(type: string | undefined, offset: number, timeoutMs: number): Promise<StoredEvent> {
    if (type === undefined) return this.#target.stream().waitFor(offset, timeoutMs);
    const wanted = type.includes("/") ? type : `${TYPE_PREFIX}${type}`;
    const signal = AbortSignal.timeout(timeoutMs);
    const events = followStream(this.#target.stream(), {
      after: offset - 1,
      signal,
      reconnect: () => this.#target.stream(),
    });
    for await (const event of events) if (event.type === wanted) return event;
    throw shellError("wait_timeout", `no ${wanted} on ${this.#target.path} within ${timeoutMs} ms`, {
      type: wanted,
      timeoutMs,
    });
  }
}
