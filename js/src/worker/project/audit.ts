/**
 * The project's record of what its door decided. Uses of secrets are on the stream before the request leaves; everything else is
 * written in batches within a second. What a flood exceeds is counted in a summary entry, so that nothing is dropped silently.
 */
import { log } from "../log.ts";
import type { EventInput } from "../stream/types.ts";

export interface AuditEntry {
  method: string;
  scheme: string;
  host: string;
  port: number;
  path: string;
  decision: string;
  ruleId?: string;
  secretPath?: string;
}

export const DECIDED = "events.iterate.com/egress/decided";
export const SUMMARY = "events.iterate.com/egress/summary";

const FLUSH_MS = 500;
/** Entries of one flush; a batch of them stays well under the stream's limit of one append. */
const MAX_ENTRIES = 200;
const MAX_PATH = 1_024;

export class Audit {
  readonly #append: (events: EventInput[]) => Promise<unknown>;
  #waiting: AuditEntry[] = [];
  #exceeding = new Map<string, number>();
  #flush: Promise<void> | null = null;

  constructor(append: (events: EventInput[]) => Promise<unknown>) {
    this.#append = append;
  }

  /** On the stream when the promise resolves; a request that carries a secret waits for it. */
  async recordNow(entry: AuditEntry): Promise<void> {
    await this.#append([toEvent(entry)]);
  }

  /** On the stream within a second. The promise is for `waitUntil`, so that the object stays until then. */
  record(entry: AuditEntry): Promise<void> {
    if (this.#waiting.length < MAX_ENTRIES) this.#waiting.push(entry);
    else this.#exceeding.set(entry.decision, (this.#exceeding.get(entry.decision) ?? 0) + 1);
    this.#flush ??= this.#flushSoon();
    return this.#flush;
  }

  async #flushSoon(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, FLUSH_MS));
    const events = this.#waiting.map(toEvent);
    if (this.#exceeding.size > 0) events.push(toSummary(this.#exceeding));
    this.#waiting = [];
    this.#exceeding = new Map();
    this.#flush = null;
    try {
      await this.#append(events);
    } catch (error) {
      log("error", "egress audit lost", { entries: events.length, error });
    }
  }
}

function toEvent(entry: AuditEntry): EventInput {
  return { type: DECIDED, payload: { ...entry, path: entry.path.slice(0, MAX_PATH) } };
}

function toSummary(counts: ReadonlyMap<string, number>): EventInput {
  return { type: SUMMARY, payload: { counts: Object.fromEntries(counts) } };
}
