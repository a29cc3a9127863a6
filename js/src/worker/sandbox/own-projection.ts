/** What the sandbox's events add up to, kept in its object's storage and folded from its own stream. */
import type { Core, ProjectionState } from "../../core/types.ts";
import { shellError } from "../errors.ts";
import type { EventPage, ReadOptions, StoredEvent } from "../stream/types.ts";
import { Wakeup } from "../stream/wakeup.ts";

const KEY = "projection";
const PAGE = 1_000;
const DEFAULT_WAIT_MS = 30_000;
const MAX_WAIT_MS = 300_000;

export interface ProjectionWait {
  offset: number;
  timeoutMs?: number;
}

type Read = (options: ReadOptions) => Promise<EventPage>;

export class OwnProjection {
  readonly #storage: DurableObjectStorage;
  readonly #core: Core;
  readonly #read: Read;
  readonly #wakeup = new Wakeup();
  #state: ProjectionState;

  constructor(storage: DurableObjectStorage, core: Core, read: Read) {
    this.#storage = storage;
    this.#core = core;
    this.#read = read;
    this.#state = storage.kv.get<ProjectionState>(KEY) ?? core.foldProjection([]);
  }

  get state(): ProjectionState {
    return this.#state;
  }

  /** Folds what was appended; what lies between it and the state is read from the stream first. */
  async add(events: StoredEvent[]): Promise<void> {
    const first = events[0];
    if (first === undefined) return;
    if (first.offset > this.#state.offset + 1) await this.catchUp();
    const fresh = events.filter(({ offset }) => offset > this.#state.offset);
    if (fresh.length > 0) this.#fold(fresh);
  }

  /** Folds everything that is on the stream. */
  async catchUp(): Promise<void> {
    for (;;) {
      const { events, head } = await this.#read({ after: this.#state.offset, limit: PAGE });
      const fresh = events.filter(({ offset }) => offset > this.#state.offset);
      if (fresh.length > 0) this.#fold(fresh);
      if (events.length === 0 || this.#state.offset >= head) return;
    }
  }

  /**
   * The state, as soon as the event at an offset is folded.
   * @throws SandboxError `wait_timeout`
   */
  async waitUntil({ offset, timeoutMs = DEFAULT_WAIT_MS }: ProjectionWait): Promise<ProjectionState> {
    const deadline = Date.now() + Math.min(timeoutMs, MAX_WAIT_MS);
    if (this.#state.offset < offset) await this.catchUp();
    while (this.#state.offset < offset) {
      const left = deadline - Date.now();
      if (left <= 0) {
        throw shellError(
          "wait_timeout",
          `the event at offset ${offset} was not folded within ${timeoutMs} ms; the newest folded one is at ${this.#state.offset}`,
          { offset, timeoutMs, folded: this.#state.offset },
        );
      }
      await this.#wakeup.wait(left);
    }
    return this.#state;
  }

  #fold(events: StoredEvent[]): void {
    this.#state = this.#core.foldProjection(events, this.#state);
    this.#storage.kv.put(KEY, this.#state);
    this.#wakeup.notify();
  }
}
