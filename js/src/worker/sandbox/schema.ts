/** The statements that made this object's tables, so that they can be made again later. */
export function schemaOf(sql: SqlStorage): string[] {
  const rows = sql.exec<{ sql: string }>(
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
  );
  return [...rows].map((row) => row.sql);
}
