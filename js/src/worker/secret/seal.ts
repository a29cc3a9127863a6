/** AES-GCM with project, path and version as associated data: a sealed row means something in its own place only. */
import { shellError } from "../errors.ts";
import type { SealingKey } from "./keys.ts";

export interface Sealed {
  keyId: string;
  iv: Uint8Array;
  ciphertext: Uint8Array;
}

export interface SealContext {
  projectId: string;
  path: string;
  version: number;
}

const IV_BYTES = 12;
const encoder = new TextEncoder();

export async function seal(key: SealingKey, context: SealContext, plaintext: string): Promise<Sealed> {
  const iv = crypto.getRandomValues(new Uint8Array(IV_BYTES));
  const ciphertext = await crypto.subtle.encrypt(
    { name: "AES-GCM", iv, additionalData: associatedData(context) },
    key.key,
    encoder.encode(plaintext),
  );
  return { keyId: key.id, iv, ciphertext: new Uint8Array(ciphertext) };
}

/** @throws SandboxError `secret_key_unknown` when no configured key opens it */
export async function unseal(
  keys: readonly SealingKey[],
  context: SealContext,
  sealed: Sealed,
): Promise<string> {
  const key = keys.find(({ id }) => id === sealed.keyId);
  try {
    if (key === undefined) throw new Error("no such key");
    const plaintext = await crypto.subtle.decrypt(
      { name: "AES-GCM", iv: sealed.iv, additionalData: associatedData(context) },
      key.key,
      sealed.ciphertext,
    );
    return new TextDecoder().decode(plaintext);
  } catch {
    throw shellError(
      "secret_key_unknown",
      `${context.path} is sealed under the key ${JSON.stringify(sealed.keyId)}, which is not configured or is another one; put it into SECRETS_KEYS again, or set the secret anew`,
      { path: context.path, keyId: sealed.keyId },
    );
  }
}

function associatedData({ projectId, path, version }: SealContext): Uint8Array {
  return encoder.encode(JSON.stringify([projectId, path, version]));
}
