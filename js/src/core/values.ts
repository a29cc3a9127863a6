import type { HeaderPairs, ProjectionState, SandboxStatus, SecretReference } from "./types.ts";

const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Bytes as the caller's kind of body: text for text, bytes for bytes. */
export function bodyLike(given: string | Uint8Array | undefined, bytes: Uint8Array): string | Uint8Array {
  return typeof given === "string" ? decoder.decode(bytes) : bytes;
}

/** The fields, and names and values in turn; nothing where they are no pairs. */
export function withPairs(fields: unknown[], pairs: HeaderPairs): unknown[] | undefined {
  if (!Array.isArray(pairs)) return undefined;
  for (const pair of pairs) {
    if (!Array.isArray(pair) || pair.length !== 2) return undefined;
    fields.push(pair[0], pair[1]);
  }
  return fields;
}

/** References from the fields that `scan_fields` in `bindings/codec_placeholders.cpp` writes. */
export function referencesOf(fields: readonly string[]): SecretReference[] {
  const references: SecretReference[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [named = "", field = ""] = [fields[i], fields[i + 1]];
    const path = named.slice(1);
    if (named.startsWith("p")) references.push({ kind: "platform", path });
    else references.push({ kind: "secret", path, ...(field === "" ? {} : { field: field.slice(1) }) });
  }
  return references;
}

/** A projection from the fields that `state_fields` in `bindings/codec_projection.cpp` writes. */
export function stateOf(fields: readonly string[]): ProjectionState {
  const [type = "", status = "", backup = "", sleepAfter = "", keepAlive = "", offset = "", ...rest] = fields;
  const instanceType = type === "" ? null : type.slice(1);
  const env: Record<string, string> = {};
  for (let i = 0; i + 1 < rest.length; i += 2) setOwn(env, rest[i] ?? "", rest[i + 1] ?? "");
  return {
    birthCertificate: instanceType === null ? null : { config: { instanceType } },
    status: status === "" ? null : (status as SandboxStatus),
    running: status === "running",
    instanceType,
    lastBackupId: backup === "" ? null : backup.slice(1),
    env,
    sleepAfter: sleepAfter === "" ? null : JSON.parse(sleepAfter),
    keepAlive: keepAlive !== "",
    offset: Number(offset),
  };
}

/** As JSON.parse does it: `__proto__` is a name like any other. */
function setOwn(object: Record<string, string>, key: string, value: string): void {
  if (key !== "__proto__") object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}

/** The object with null for every undefined. */
export function withNulls(values: Record<string, unknown> | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values ?? {}).map(([key, value]) => [key, value ?? null]));
}
