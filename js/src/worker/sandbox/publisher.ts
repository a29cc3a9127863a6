/**
 * The sandbox's own stream, written in the order in which things happened. Durable events are taken from the state's outbox, all that
 * are there at once, and are told to the catalogue and folded before they count as appended; the others are best effort.
 */
import type { LifecycleEvent, LifecycleSignal, LifecycleState } from "../../core/types-lifecycle.ts";
import { log } from "../log.ts";
import type { EventInput, StoredEvent } from "../stream/types.ts";

export interface PublisherWorld {
  append(events: EventInput[]): Promise<StoredEvent[]>;
  /** Adds what was appended to the projection. */
  fold(events: StoredEvent[]): Promise<void>;
  /** Moves the catalogue's row of this sandbox. */
  complete(event: StoredEvent): Promise<void>;
  checkpoint(point: string): Promise<void>;
}

type Report = (signal: LifecycleSignal) => void;

export class Publisher {
  readonly #world: PublisherWorld;
  readonly #report: Report;
  #last: Promise<void> = Promise.resolve();

  constructor(world: PublisherWorld, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  /** Queues the events behind the earlier ones. The promise is for who keeps the object alive; it never rejects. */
  publish(events: readonly LifecycleEvent[], state: () => LifecycleState): Promise<void> {
    const notes = events.filter((event) => !event.durable);
    const durable = events.length > notes.length;
    this.#last = this.#last.then(async () => {
      if (notes.length > 0) await this.#note(notes);
      if (durable) await this.#flush(state);
    });
    return this.#last;
  }

  async #note(events: readonly LifecycleEvent[]): Promise<void> {
    try {
      const stored = await this.#world.append(events.map(({ type, payload }) => ({ type, payload })));
      await this.#world.checkpoint(`noted:${events.length}`);
      await this.#world.fold(stored);
    } catch (error) {
      log("warn", "audit facts lost", { types: events.map(({ type }) => type), error });
    }
  }

  async #flush(state: () => LifecycleState): Promise<void> {
    const outbox = state().outbox.slice();
    if (outbox.length === 0) return;
    try {
      const stored = await this.#world.append(
        outbox.map(({ type, payload, key }) => ({ type, payload, idempotencyKey: key })),
      );
      await this.#world.checkpoint(`appended:${outbox.map(({ name }) => name).join("+")}`);
      for (const event of stored) {
        await this.#world.complete(event);
        await this.#world.checkpoint(`told:${event.type}`);
      }
      await this.#world.checkpoint(`completed:${outbox.map(({ name }) => name).join("+")}`);
      // Last, so that it reaches the disk together with the report, and nothing that leaves the object waits for it alone.
      await this.#world.fold(stored);
      await this.#world.checkpoint(`folded:${outbox.map(({ name }) => name).join("+")}`);
    } catch (error) {
      this.#report({ kind: "appendFailed", error: error instanceof Error ? error.message : String(error) });
      return;
    }
    this.#report({ kind: "eventsAppended", keys: outbox.map(({ key }) => key) });
  }
}
