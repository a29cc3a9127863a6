/** The keys that secrets are sealed under. The first seals; all open, so that a new one can be put in front of an old one. */
import { shellError } from "../errors.ts";

export interface SealingKey {
  id: string;
  key: CryptoKey;
}

export interface SecretKeySource {
  SECRETS_KEYS?: string;
  SECRETS_KEY?: string;
}

/** The id of a key that was configured alone. */
const SINGLE_KEY_ID = "default";
const KEY_BYTES = 32;

/** @throws SandboxError `configuration_missing`, naming the variable and never a key */
export async function loadSealingKeys(source: SecretKeySource): Promise<[SealingKey, ...SealingKey[]]> {
  const [first, ...others] = await Promise.all(entriesOf(source).map(importKey));
  if (first === undefined) {
    throw missing("neither SECRETS_KEYS nor SECRETS_KEY is set; secrets need a key of 32 bytes in base64");
  }
  return [first, ...others];
}

function entriesOf(source: SecretKeySource): { id: string; key: string }[] {
  const single = source.SECRETS_KEY;
  const listed = source.SECRETS_KEYS === undefined ? [] : parseKeys(source.SECRETS_KEYS);
  return single === undefined || single === "" ? listed : [...listed, { id: SINGLE_KEY_ID, key: single }];
}

function parseKeys(json: string): { id: string; key: string }[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw missing("SECRETS_KEYS is not JSON");
  }
  if (!Array.isArray(value) || !value.every(isEntry)) {
    throw missing('SECRETS_KEYS must be a JSON array of { "id", "key" }');
  }
  return value;
}

function isEntry(value: unknown): value is { id: string; key: string } {
  if (typeof value !== "object" || value === null || !("id" in value) || !("key" in value)) return false;
  return typeof value.id === "string" && value.id !== "" && typeof value.key === "string";
}

async function importKey({ id, key }: { id: string; key: string }): Promise<SealingKey> {
  const bytes = decodeBase64(key);
  if (bytes?.byteLength !== KEY_BYTES) {
    throw missing(`the key ${JSON.stringify(id)} must be ${KEY_BYTES} bytes in base64`);
  }
  return { id, key: await crypto.subtle.importKey("raw", bytes, "AES-GCM", false, ["encrypt", "decrypt"]) };
}

function decodeBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

function missing(message: string) {
  return shellError("configuration_missing", message, { variable: "SECRETS_KEYS" });
}
