import { DurableObject } from "cloudflare:workers";
import { loadCore } from "#core";
import type { Core } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import { invalidArgument, shellError } from "../errors.ts";
import { log } from "../log.ts";
import { count } from "../metrics.ts";
import { announceToAncestors } from "./announce.ts";
import { prepareBatch } from "./batch.ts";
import { type AppendOutcome, EventLog } from "./event-log.ts";
import { encodeLines, HEARTBEAT } from "./ndjson.ts";
import type { EventInput, EventPage, ReadOptions, StoredEvent } from "./types.ts";
import { Wakeup } from "./wakeup.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const TAIL_PAGE = 256;
/** A tail without events sends an empty line this often, so that a reader that is gone is noticed. */
const HEARTBEAT_MS = 15_000;
const DEFAULT_WAIT_MS = 30_000;
const MAX_WAIT_MS = 300_000;
const ANNOUNCE_RETRY_MS = 1_000;

/** One stream of one project: append-only, ordered by offset, its identity being the object's name. */
export class StreamDurableObject extends DurableObject<WorkerEnv> {
  readonly #log: EventLog;
  readonly #wakeup = new Wakeup();
  #announcing: Promise<void> | null = null;

  /** A subclass that keeps an index beside the events hands in a log that writes it. */
  constructor(ctx: DurableObjectState, env: WorkerEnv, log = new EventLog(ctx.storage)) {
    super(ctx, env);
    this.#log = log;
  }

  /**
   * Appends all events or none. The ancestors of a new stream are told behind it, or at the latest with the next append.
   * An event whose key was used before is not written again; the original is returned in its place.
   * @throws SandboxError for an event that does not validate, or that is too large
   */
  async append(events: EventInput[]): Promise<StoredEvent[]> {
    return (await this.appendEvents(events)).events;
  }

  /** An own property and not a method, so that it is out of reach of RPC. */
  protected readonly appendEvents = async (events: EventInput[]): Promise<AppendOutcome> => {
    const core = await loadCore();
    identityOf(core, this.ctx);
    const prepared = prepareBatch(core, events);
    const outcome = this.#log.append(prepared, new Date().toISOString());
    count("events_appended", outcome.appended);
    if (outcome.appended > 0) this.#wakeup.notify();
    if (!this.#log.announced()) this.ctx.waitUntil(this.#announce(core));
    return outcome;
  };

  /** A page of events after an offset. Of a stream that does not exist: nothing, and nothing is written. */
  async read(options: ReadOptions = {}): Promise<EventPage> {
    const after = offsetOf("after", options.after ?? 0);
    const limit = options.limit ?? DEFAULT_LIMIT;
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw invalidArgument("limit", limit, `a whole number from 1 to ${MAX_LIMIT}`);
    }
    return this.#log.page(after, limit);
  }

  /**
   * Replays what comes after an offset, then follows, as lines of JSON. Every read of it takes the next page by offset from
   * the table, so replayed and live events cannot overlap or leave a gap.
   */
  async tail(options: { after?: number } = {}): Promise<ReadableStream<Uint8Array>> {
    let cursor = offsetOf("after", options.after ?? 0);
    let cancelled = false;
    return new ReadableStream({
      type: "bytes",
      pull: async (controller) => {
        while (!cancelled) {
          const { events } = this.#log.page(cursor, TAIL_PAGE);
          const last = events.at(-1);
          if (last !== undefined) {
            cursor = last.offset;
            return controller.enqueue(encodeLines(events));
          }
          if ((await this.#wakeup.wait(HEARTBEAT_MS)) === "timeout" && !cancelled) {
            return controller.enqueue(HEARTBEAT.slice());
          }
        }
      },
      cancel: () => {
        cancelled = true;
        this.#wakeup.notify();
      },
    });
  }

  /**
   * The event at an offset, as soon as there is one.
   * @throws SandboxError `wait_timeout`
   */
  async waitFor(offset: number, timeoutMs: number = DEFAULT_WAIT_MS): Promise<StoredEvent> {
    if (offsetOf("offset", offset) === 0) throw invalidArgument("offset", offset, "a whole number from 1");
    if (!Number.isFinite(timeoutMs) || timeoutMs < 0 || timeoutMs > MAX_WAIT_MS) {
      throw invalidArgument("timeoutMs", timeoutMs, `a number from 0 to ${MAX_WAIT_MS}`);
    }
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      const event = this.#log.at(offset);
      if (event !== undefined) return event;
      const left = deadline - Date.now();
      if (left <= 0) {
        throw shellError(
          "wait_timeout",
          `no event at offset ${offset} within ${timeoutMs} ms; the newest is at ${this.#log.head()}`,
          { offset, timeoutMs, head: this.#log.head() },
        );
      }
      await this.#wakeup.wait(left);
    }
  }

  /** Runs only when ancestors could not be told after the first append. */
  override async alarm(): Promise<void> {
    await this.#announce(await loadCore());
  }

  #announce(core: Core): Promise<void> {
    this.#announcing ??= this.#tryAnnounce(core).finally(() => {
      this.#announcing = null;
    });
    return this.#announcing;
  }

  /** Failing ancestors never fail an append: what they missed is told again by the alarm. */
  async #tryAnnounce(core: Core): Promise<void> {
    if (this.#log.announced()) return;
    try {
      await announceToAncestors(this.env, core, identityOf(core, this.ctx));
      this.#log.markAnnounced();
    } catch (error) {
      log("warn", "stream announcement failed", { stream: this.ctx.id.name, error });
      await this.ctx.storage.setAlarm(Date.now() + ANNOUNCE_RETRY_MS);
    }
  }
}

/** @throws SandboxError `invalid_name` for an object that was addressed by anything but a name that the core made. */
function identityOf(core: Core, ctx: DurableObjectState): { projectId: string; path: string } {
  return core.parseDurableObjectName(ctx.id.name ?? "");
}

function offsetOf(name: string, value: unknown): number {
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw invalidArgument(name, value, "a whole number from 0");
  }
  return value;
}
