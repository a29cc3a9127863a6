/** Sending a decided request on, and giving the answer back as it came. */
import type { Core } from "../../core/types.ts";
import { engineHeader } from "../../engine/protocol.ts";
import type { WorkerEnv } from "../env.ts";
import { shellError } from "../errors.ts";
import { wireError } from "../wire.ts";

/** How the outbound handlers of the sandboxes tell the door who is asking. Every other sender's is removed. */
export const callerHeader = "x-iterate-caller";

export interface OutgoingRequest {
  url: string;
  method: string;
  headers: Headers;
  body: ReadableStream<Uint8Array> | Uint8Array | string | null;
}

/**
 * Sends a request and returns the answer untouched: redirects go to the caller, bodies stream both ways, a 101 keeps its socket.
 * @throws SandboxError `upstream_unreachable`
 */
export async function send(env: WorkerEnv, core: Core, request: OutgoingRequest): Promise<Response> {
  const headers = new Headers(request.headers);
  allowLiteralAddress(env, core, request.url, headers);
  try {
    return await fetch(request.url, {
      method: request.method,
      headers,
      body: request.body,
      redirect: "manual",
    });
  } catch (error) {
    const { host } = new URL(request.url);
    const reason = error instanceof Error ? error.message : String(error);
    throw shellError("upstream_unreachable", `${host} could not be reached: ${reason}`, { host });
  }
}

/**
 * The host refuses every address that is not public. A request for a literal one got past the decision only if a rule names it,
 * so the host is told; for a name it never is, whatever the name resolves to.
 */
function allowLiteralAddress(env: WorkerEnv, core: Core, url: string, headers: Headers): void {
  headers.delete(engineHeader.allowAddress);
  // Under wrangler dev requests leave without passing the host, and would carry the secret to their target.
  if (env.ENGINE_MODE !== "embedded" || env.ENGINE_SECRET === undefined) return;
  const host = new URL(url).hostname;
  if (!isAddress(host)) return;
  if (core.classifyAddress(host.replace(/^\[|\]$/g, "")) !== "public") {
    headers.set(engineHeader.allowAddress, env.ENGINE_SECRET);
  }
}

/** In a parsed URL an IPv4 address is always dotted and an IPv6 address always in brackets. */
function isAddress(hostname: string): boolean {
  return hostname.startsWith("[") || /^\d+\.\d+\.\d+\.\d+$/.test(hostname);
}

/** The answer to a WebSocket upgrade, with the headers that a client may see. */
export function webSocketResponse(core: Core, request: Request, response: Response): Response {
  if (response.status !== 101 || response.webSocket === null) return response;
  const headers = core.webSocketResponseHeaders(
    { headers: [...request.headers] },
    { status: response.status, headers: [...response.headers] },
  );
  return new Response(null, { status: 101, webSocket: response.webSocket, headers });
}

export function isUpgrade(request: Request): boolean {
  return request.headers.get("upgrade")?.trim().toLowerCase() === "websocket";
}

/** A refusal in the one shape that a person running curl reads, whoever refused. */
export function refusalResponse(
  core: Core,
  refusal: { code: string; status?: number; rule?: string | null; detail: string },
): Response {
  const { code, status = 403, rule = null, detail } = refusal;
  const { headers, body } = core.denyResponse({ kind: "deny", status, code, rule, detail });
  return new Response(body, { status, headers });
}

export function errorResponse(core: Core, error: unknown): Response {
  const { code, message, status } = wireError(error);
  return refusalResponse(core, { code, status, detail: message });
}
