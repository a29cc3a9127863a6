/** Using a secret on one request: the only place where material and request meet. */
import type { Core } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import { shellError } from "../errors.ts";
import { readBody, templateHeader } from "../project/body.ts";
import { isUpgrade, send, webSocketResponse } from "../project/forward.ts";
import { Scrubber } from "./scrub.ts";
import type { SecretMaterial, SecretReference } from "./types.ts";

/** The core refuses a template larger than 1 MiB; one byte more is enough for it to see that. */
const TEMPLATE_BYTES = 1024 * 1024 + 1;

export interface UsableSecret {
  material: SecretMaterial;
  origins: string[];
}

/**
 * Refuses what must not leave: a target outside the pinned origins, a field that is not there.
 * @throws SandboxError of the pin or the field; it names both origins and never material
 */
export function checkUse(
  core: Core,
  secret: UsableSecret,
  url: string,
  references: readonly SecretReference[],
): Map<string, string> {
  core.checkSecretPin({ origins: secret.origins, url });
  return new Map(
    references.map((reference) => [
      referenceKey(reference),
      core.selectSecretField(secret.material, reference.field),
    ]),
  );
}

/** The body, when placeholders may stand in it; every other body streams past unread. */
export async function templateBody(request: Request): Promise<Uint8Array | null> {
  if (request.body === null || !request.headers.has(templateHeader)) return null;
  return readBody(request.body, TEMPLATE_BYTES);
}

export interface SecretUse {
  env: WorkerEnv;
  core: Core;
  secret: UsableSecret;
  request: Request;
  references: readonly SecretReference[];
  body: Uint8Array | null;
}

/** Puts the values in, sends the request and scrubs the answer. */
export async function sendSubstituted(use: SecretUse): Promise<Response> {
  const { env, core, secret, request, references, body } = use;
  const values = checkUse(core, secret, request.url, references);
  const substituted = core.substitutePlaceholders(
    { url: request.url, headers: [...request.headers], ...(body === null ? {} : { body }) },
    Object.fromEntries(values),
  );
  const scrubber = new Scrubber(core.scrubPatterns(secret.material));
  const headers = new Headers(substituted.headers.map(([name, value]): [string, string] => [name, value]));
  headers.delete(templateHeader);
  acceptWhatCanBeRead(headers);
  try {
    const response = await send(env, core, {
      url: substituted.url,
      method: request.method,
      headers,
      body: body === null ? request.body : (substituted.body ?? body),
    });
    return scrubbed(core, scrubber, request, response);
  } catch (error) {
    throw scrubbedError(scrubber, error);
  }
}

export function referenceKey(reference: SecretReference): string {
  const base = `${reference.kind}:${reference.path}`;
  return reference.field === undefined ? base : `${base}#${reference.field}`;
}

/** A compression that the runtime does not undo would hide an echoed value from the scrubber. */
function acceptWhatCanBeRead(headers: Headers): void {
  const accepted = headers.get("accept-encoding");
  if (accepted !== null) headers.set("accept-encoding", /\bgzip\b/i.test(accepted) ? "gzip" : "identity");
}

function scrubbed(core: Core, scrubber: Scrubber, request: Request, response: Response): Response {
  const headers = scrubber.headers(response.headers);
  const clean = { status: response.status, statusText: scrubber.text(response.statusText), headers };
  if (isUpgrade(request) && response.webSocket !== null) {
    return webSocketResponse(core, request, new Response(null, { ...clean, webSocket: response.webSocket }));
  }
  // The runtime compresses anew what it decompressed for us, to another length.
  if (headers.has("content-encoding")) headers.delete("content-length");
  return new Response(response.body === null ? null : scrubber.body(response.body), clean);
}

function scrubbedError(scrubber: Scrubber, error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  return shellError("upstream_unreachable", scrubber.text(message));
}
