/**
 * The tables that the SDK's constructor makes in every object. A sandbox that does not exist keeps nothing; but nearly always a create
 * follows, which can use them: making a new file in their place takes a dozen writes to the disk.
 */
export class UnbornStorage {
  readonly #ctx: DurableObjectState;
  #blank = false;
  /** Makes the tables again that were removed. */
  #schema: string[] = [];

  constructor(ctx: DurableObjectState) {
    this.#ctx = ctx;
  }

  /** There is no sandbox yet. */
  begin(): void {
    this.#blank = true;
  }

  /** Somebody asked for a sandbox that does not exist. Does nothing where there is one. */
  clear(): void {
    if (!this.#blank) return;
    this.#blank = false;
    const { storage } = this.#ctx;
    this.#schema = schemaOf(storage.sql);
    this.#ctx.waitUntil(storage.deleteAll());
  }

  /** A sandbox is about to be stored. */
  born(): void {
    this.#blank = false;
    for (const statement of this.#schema.splice(0)) this.#ctx.storage.sql.exec(statement);
  }
}

function schemaOf(sql: SqlStorage): string[] {
  const rows = sql.exec<{ sql: string }>(
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
  );
  return [...rows].map((row) => row.sql);
}
