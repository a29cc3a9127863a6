/**
 * One indexed row a claim beside the catalogue's events, so that looking one up and listing by type or status cost the same with
 * ten claims as with a million.
 */
import { hasTable } from "./event-log.ts";
import type { StoredEvent } from "./types.ts";

export type SandboxStatus = "claimed" | "created" | "running" | "stopped" | "destroyed";

export interface ClaimRow {
  path: string;
  instanceType: string;
  status: SandboxStatus;
  createdAt: string;
}

export interface ClaimFilter {
  instanceType?: string;
  status?: SandboxStatus;
}

type StoredRow = {
  path: string;
  instance_type: string;
  status: SandboxStatus;
  created_at: string;
  claim_offset: number;
};

export const CREATE_REQUESTED = "events.iterate.com/sandbox/create-requested";

/** What each completion of a sandbox means for its row. */
const STATUS_AFTER: Readonly<Record<string, SandboxStatus>> = {
  "events.iterate.com/sandbox/created": "created",
  "events.iterate.com/sandbox/started": "running",
  "events.iterate.com/sandbox/stopped": "stopped",
  "events.iterate.com/sandbox/destroyed": "destroyed",
};

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS claims (
    path TEXT PRIMARY KEY,
    instance_type TEXT NOT NULL,
    status TEXT NOT NULL,
    created_at TEXT NOT NULL,
    claim_offset INTEGER NOT NULL,
    status_offset INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS claims_by_type ON claims (instance_type, path);
  CREATE INDEX IF NOT EXISTS claims_by_status ON claims (status, path);
  CREATE INDEX IF NOT EXISTS claims_by_both ON claims (instance_type, status, path);
`;

export class ClaimIndex {
  readonly #sql: SqlStorage;
  #exists: boolean | undefined;

  constructor(storage: DurableObjectStorage) {
    this.#sql = storage.sql;
  }

  /** Called inside the transaction of the append: claim and row are written together or not at all. */
  onInsert(event: StoredEvent): void {
    if (event.type !== CREATE_REQUESTED) return;
    if (!this.#ready()) this.#sql.exec(SCHEMA);
    this.#sql.exec(
      "INSERT INTO claims (path, instance_type, status, created_at, claim_offset, status_offset) VALUES (?, ?, 'claimed', ?, ?, 0)",
      String(event.payload.path),
      String(event.payload.instanceType),
      event.createdAt,
      event.offset,
    );
    this.#exists = true;
  }

  find(path: string): (ClaimRow & { claimOffset: number }) | undefined {
    if (!this.#ready()) return undefined;
    const [row] = this.#sql.exec<StoredRow>(
      "SELECT path, instance_type, status, created_at, claim_offset FROM claims WHERE path = ?",
      path,
    );
    return row === undefined ? undefined : { ...toRow(row), claimOffset: row.claim_offset };
  }

  /** In the order of paths, after one of them. */
  list(filter: ClaimFilter, after: string, limit: number): ClaimRow[] {
    if (!this.#ready()) return [];
    const conditions = ["path > ?"];
    const values: string[] = [after];
    if (filter.instanceType !== undefined) {
      conditions.push("instance_type = ?");
      values.push(filter.instanceType);
    }
    if (filter.status !== undefined) {
      conditions.push("status = ?");
      values.push(filter.status);
    }
    const rows = this.#sql.exec<StoredRow>(
      `SELECT path, instance_type, status, created_at, claim_offset FROM claims WHERE ${conditions.join(" AND ")} ORDER BY path LIMIT ?`,
      ...values,
      limit,
    );
    return [...rows].map(toRow);
  }

  /** Moves a row by a completion of its sandbox. An older completion that comes late changes nothing, and destroyed is final. */
  complete(path: string, type: string, offset: number): void {
    const status = STATUS_AFTER[type];
    if (status === undefined || !this.#ready()) return;
    this.#sql.exec(
      "UPDATE claims SET status = ?, status_offset = ? WHERE path = ? AND status_offset < ? AND status <> 'destroyed'",
      status,
      offset,
      path,
      offset,
    );
  }

  #ready(): boolean {
    // A table that was rolled back with its transaction is not remembered as there.
    if (this.#exists !== true) this.#exists = hasTable(this.#sql, "claims");
    return this.#exists;
  }
}

function toRow(row: StoredRow): ClaimRow {
  return { path: row.path, instanceType: row.instance_type, status: row.status, createdAt: row.created_at };
}
