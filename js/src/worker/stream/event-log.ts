/**
 * The events of one stream in SQLite. Nothing is written, not even a table, before the first append: a read of a stream that
 * was never written leaves the object's storage empty.
 */
import type { EventPage, StoredEvent } from "./types.ts";

/** An event that passed validation, with its payload already as text, so that it is written as it was measured. */
export interface PreparedEvent {
  type: string;
  payloadText: string;
  idempotencyKey: string | null;
}

type EventRow = {
  offset: number;
  type: string;
  payload: string;
  idempotency_key: string | null;
  created_at: string;
};

export interface AppendOutcome {
  events: StoredEvent[];
  /** How many of them are new. */
  appended: number;
}

/** A page stays well under the 32 MiB that one RPC may carry, whatever the events weigh. */
const PAGE_BYTES = 4 * 1024 * 1024;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS events (
    offset INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    payload TEXT NOT NULL,
    idempotency_key TEXT UNIQUE,
    created_at TEXT NOT NULL
  );
  CREATE TABLE IF NOT EXISTS stream_state (key TEXT PRIMARY KEY, value TEXT NOT NULL);
`;

const COLUMNS = "offset, type, payload, idempotency_key, created_at";

export class EventLog {
  readonly #storage: DurableObjectStorage;
  readonly #onInsert: (event: StoredEvent) => void;
  #exists: boolean | undefined;

  /** `onInsert` runs inside the append's transaction, once for each event that is new. */
  constructor(storage: DurableObjectStorage, onInsert: (event: StoredEvent) => void = () => undefined) {
    this.#storage = storage;
    this.#onInsert = onInsert;
  }

  exists(): boolean {
    this.#exists ??= hasTable(this.#storage.sql, "events");
    return this.#exists;
  }

  head(): number {
    if (!this.exists()) return 0;
    const row = this.#storage.sql
      .exec<{ head: number | null }>("SELECT MAX(offset) AS head FROM events")
      .one();
    return row.head ?? 0;
  }

  /** All of them or none, in one transaction. */
  append(events: readonly PreparedEvent[], createdAt: string): AppendOutcome {
    const first = !this.exists();
    let appended = 0;
    const stored = this.#storage.transactionSync(() => {
      if (first) this.#storage.sql.exec(SCHEMA);
      let head = first ? 0 : this.head();
      return events.map((event) => {
        const known = event.idempotencyKey === null ? undefined : this.#byKey(event.idempotencyKey);
        if (known !== undefined) return known;
        head += 1;
        appended += 1;
        return this.#insert(event, head, createdAt);
      });
    });
    this.#exists = true;
    return { events: stored, appended };
  }

  page(after: number, limit: number): EventPage {
    if (!this.exists()) return { events: [], head: 0 };
    const events: StoredEvent[] = [];
    let bytes = 0;
    const rows = this.#storage.sql.exec<EventRow>(
      `SELECT ${COLUMNS} FROM events WHERE offset > ? ORDER BY offset LIMIT ?`,
      after,
      limit,
    );
    for (const row of rows) {
      bytes += row.payload.length;
      if (events.length > 0 && bytes > PAGE_BYTES) break;
      events.push(toEvent(row));
    }
    return { events, head: this.head() };
  }

  at(offset: number): StoredEvent | undefined {
    if (!this.exists()) return undefined;
    const [row] = this.#storage.sql.exec<EventRow>(`SELECT ${COLUMNS} FROM events WHERE offset = ?`, offset);
    return row === undefined ? undefined : toEvent(row);
  }

  /** Whether the ancestors know of this stream; a crash before they do leaves it to the next append or the alarm. */
  announced(): boolean {
    if (!this.exists()) return true;
    return [...this.#storage.sql.exec("SELECT 1 FROM stream_state WHERE key = 'announced'")].length > 0;
  }

  markAnnounced(): void {
    this.#storage.sql.exec("INSERT OR REPLACE INTO stream_state (key, value) VALUES ('announced', '1')");
  }

  #byKey(key: string): StoredEvent | undefined {
    const [row] = this.#storage.sql.exec<EventRow>(
      `SELECT ${COLUMNS} FROM events WHERE idempotency_key = ?`,
      key,
    );
    return row === undefined ? undefined : toEvent(row);
  }

  #insert(event: PreparedEvent, offset: number, createdAt: string): StoredEvent {
    this.#storage.sql.exec(
      `INSERT INTO events (${COLUMNS}) VALUES (?, ?, ?, ?, ?)`,
      offset,
      event.type,
      event.payloadText,
      event.idempotencyKey,
      createdAt,
    );
    const stored: StoredEvent = {
      offset,
      type: event.type,
      payload: JSON.parse(event.payloadText),
      idempotencyKey: event.idempotencyKey,
      createdAt,
    };
    this.#onInsert(stored);
    return stored;
  }
}

/** Asks the schema, which reads and never creates. */
export function hasTable(sql: SqlStorage, name: string): boolean {
  return [...sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", name)].length > 0;
}

function toEvent(row: EventRow): StoredEvent {
  return {
    offset: row.offset,
    type: row.type,
    payload: JSON.parse(row.payload),
    idempotencyKey: row.idempotency_key,
    createdAt: row.created_at,
  };
}
