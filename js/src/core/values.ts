const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Bytes as the caller's kind of body: text for text, bytes for bytes. */
export function bodyLike(given: string | Uint8Array | undefined, bytes: Uint8Array): string | Uint8Array {
  return typeof given === "string" ? decoder.decode(bytes) : bytes;
}

/** The object with null for every undefined. */
export function withNulls(values: Record<string, unknown> | undefined): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values ?? {}).map(([key, value]) => [key, value ?? null]));
}
