/** Structured logs, one JSON object a line. Nothing that came from a secret is ever handed to it. */

export type LogLevel = "debug" | "info" | "warn" | "error";

export function logLine(level: LogLevel, message: string, fields: Record<string, unknown> = {}): string {
  return JSON.stringify({ level, message, time: new Date().toISOString(), ...printable(fields) });
}

export function log(level: LogLevel, message: string, fields: Record<string, unknown> = {}): void {
  const line = logLine(level, message, fields);
  if (level === "error") console.error(line);
  else if (level === "warn") console.warn(line);
  else console.log(line);
}

/** The id under which one request is found in the logs: the platform's where there is one. */
export function requestId(request: Request): string {
  return request.headers.get("cf-ray") ?? crypto.randomUUID();
}

function printable(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => [
      key,
      value instanceof Error ? describeError(value) : value,
    ]),
  );
}

function describeError(error: Error): Record<string, unknown> {
  const code = "code" in error ? error.code : undefined;
  return { name: error.name, message: error.message, ...(code === undefined ? {} : { code }) };
}
