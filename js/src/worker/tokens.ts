/**
 * Tokens: signed, scoped to one project or to an operator, expiring. They are revoked by taking their key out of TOKEN_KEYS. The
 * file runs in Node and in the Worker, so that servers and the CLI mint what the Worker verifies.
 */
import { errors, jwtVerify, SignJWT } from "jose";
import { invalidArgument, shellError } from "./errors.ts";

export interface TokenKey {
  id: string;
  secret: string;
}

export type Principal = { kind: "project"; projectId: string } | { kind: "operator" };

export interface VerifiedToken {
  principal: Principal;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

export type MintOptions = {
  /** Seconds until the token expires; a day without it. */
  expiresInSeconds?: number;
} & ({ projectId: string; operator?: false } | { operator: true; projectId?: undefined });

const ISSUER = "iterate-sandboxes";
const AUDIENCE = "itx";
const ALGORITHM = "HS256";
const DEFAULT_LIFETIME_SECONDS = 24 * 60 * 60;
/** HS256 asks for a key of at least its hash's length. */
const MIN_SECRET_BYTES = 32;

const encoder = new TextEncoder();

/** @throws SandboxError `configuration_missing` naming what is wrong, never a secret */
export function parseTokenKeys(json: string | undefined): TokenKey[] {
  const keys = parseJson(json);
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isTokenKey)) {
    throw shellError(
      "configuration_missing",
      `TOKEN_KEYS must be a JSON array of { "id", "secret" } with secrets of at least ${MIN_SECRET_BYTES} bytes; the first signs`,
      { variable: "TOKEN_KEYS" },
    );
  }
  return keys;
}

/** A token for one project, or for an operator, signed with the first of the keys (TOKEN_KEYS, parsed or as it is). */
export async function mintToken(keys: string | readonly TokenKey[], options: MintOptions): Promise<string> {
  const [key] = typeof keys === "string" ? parseTokenKeys(keys) : keys;
  if (key === undefined) throw new RangeError("there is no key to sign with");
  const lifetime = options.expiresInSeconds ?? DEFAULT_LIFETIME_SECONDS;
  if (!Number.isSafeInteger(lifetime) || lifetime < 1) {
    throw invalidArgument("expiresInSeconds", lifetime, "a whole number of seconds from 1");
  }
  const claims =
    options.operator === true ? { role: "operator" } : { role: "project", project: options.projectId };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: ALGORITHM, kid: key.id })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setIssuedAt()
    .setExpirationTime(Math.floor(Date.now() / 1000) + lifetime)
    .sign(encoder.encode(key.secret));
}

/** @throws SandboxError `unauthorized`, which never says what was wrong */
export async function verifyToken(keys: readonly TokenKey[], token: string): Promise<VerifiedToken> {
  try {
    const { payload } = await jwtVerify(
      token,
      (header) => {
        const key = keys.find(({ id }) => id === header.kid);
        if (key === undefined) throw new errors.JWKSNoMatchingKey();
        return encoder.encode(key.secret);
      },
      {
        algorithms: [ALGORITHM],
        issuer: ISSUER,
        audience: AUDIENCE,
        requiredClaims: ["exp", "role"],
      },
    );
    return { principal: principalOf(payload), expiresAt: (payload.exp ?? 0) * 1000 };
  } catch {
    throw unauthorized();
  }
}

export function unauthorized() {
  return shellError("unauthorized", "a valid token is required: Authorization: Bearer <token>");
}

/** Compares two secrets in a time that says nothing about where they differ, or how long they are. */
export async function sameSecret(given: string, expected: string): Promise<boolean> {
  const [left, right] = await Promise.all([digest(given), digest(expected)]);
  let difference = 0;
  for (let index = 0; index < left.length; index += 1) {
    difference |= (left[index] ?? 0) ^ (right[index] ?? 0);
  }
  return difference === 0;
}

async function digest(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
}

function principalOf(payload: Record<string, unknown>): Principal {
  if (payload.role === "operator") return { kind: "operator" };
  if (payload.role === "project" && typeof payload.project === "string") {
    return { kind: "project", projectId: payload.project };
  }
  throw unauthorized();
}

function isTokenKey(value: unknown): value is TokenKey {
  return (
    typeof value === "object" &&
    value !== null &&
    "id" in value &&
    typeof value.id === "string" &&
    value.id !== "" &&
    "secret" in value &&
    typeof value.secret === "string" &&
    encoder.encode(value.secret).byteLength >= MIN_SECRET_BYTES
  );
}

function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}
