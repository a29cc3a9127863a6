/** Tables and colours for people, tab-separated lines for pipes, JSON where asked. */
import color from "picocolors";

export function printRows(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  value: unknown,
  json: boolean | undefined,
): void {
  if (json === true) {
    printJson(value);
    return;
  }
  if (process.stdout.isTTY !== true) {
    for (const row of rows) console.log(row.join("\t"));
    return;
  }
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  console.log(color.bold(line(head)));
  for (const row of rows) console.log(line(row));
}

export function printJson(value: unknown): void {
  console.log(JSON.stringify(value ?? null));
}

/** One line for a person, the whole value as JSON. */
export function printResult(line: string, value: unknown, json: boolean | undefined): void {
  if (json === true) printJson(value);
  else console.log(line);
}
