/** What callers of a stream hand in and get back. */

export interface EventInput {
  type: string;
  payload: Record<string, unknown>;
  /** A second append with the same key gives back the first event and writes nothing. */
  idempotencyKey?: string;
}

export interface StoredEvent {
  /** From 1, without holes. */
  offset: number;
  type: string;
  payload: Record<string, unknown>;
  idempotencyKey: string | null;
  /** ISO 8601, UTC. */
  createdAt: string;
}

export interface EventPage {
  events: StoredEvent[];
  /** The offset of the newest event; a page that ends before it has more behind it. */
  head: number;
}

export interface ReadOptions {
  after?: number;
  limit?: number;
}
