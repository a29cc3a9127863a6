/** Checks of what clients hand in: a wrong argument is told by name, with what came and what is allowed. */
import { invalidArgument } from "../worker/errors.ts";

export function objectArgument(name: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidArgument(name, value, "an object");
  }
  return { ...value };
}

/** An options object that may be left out; members it does not know are refused, so that a typo is not silently ignored. */
export function optionsArgument(
  name: string,
  value: unknown,
  known: readonly string[],
): Record<string, unknown> {
  const options = value === undefined ? {} : objectArgument(name, value);
  for (const key of Object.keys(options)) {
    if (!known.includes(key))
      throw invalidArgument(`${name}.${key}`, options[key], `one of ${known.join(", ")}`);
  }
  return options;
}

export function stringArgument(name: string, value: unknown): string {
  if (typeof value !== "string") throw invalidArgument(name, value, "text");
  return value;
}

export function optionalNumber(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value)) throw invalidArgument(name, value, "a number");
  return value;
}

export function optionalString(name: string, value: unknown): string | undefined {
  return value === undefined ? undefined : stringArgument(name, value);
}

/** `{ key: value }` without the members that are undefined. */
export function defined<T extends Record<string, unknown>>(
  value: T,
): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const result: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const key in value) {
    const member = value[key];
    if (isDefined(member)) result[key] = member;
  }
  return result;
}

function isDefined<T>(value: T): value is Exclude<T, undefined> {
  return value !== undefined;
}
