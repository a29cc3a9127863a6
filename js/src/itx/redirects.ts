/** Following redirects on behalf of a caller: what may follow is the core's decision, and every hop passes the door again. */
import { shellError } from "../worker/errors.ts";
import { secretStub } from "../worker/project/stubs.ts";
import type { ItxContext } from "./context.ts";

/** As the Fetch standard has it. */
const MAX_HOPS = 20;
/** A body up to this size is kept for a redirect that wants it again. */
const MAX_KEPT_BODY = 4 * 1024 * 1024;
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

type Send = (request: Request) => Promise<Response>;

interface Hop {
  request: Request;
  /** Null when the body is larger than what is kept. */
  kept: Uint8Array | null;
}

export async function follow(context: ItxContext, first: Request, send: Send): Promise<Response> {
  if (first.redirect === "manual" || isUpgrade(first)) return send(first);
  let hop = await keepBody(first);
  let origins: string[] | null | undefined;
  for (let count = 0; count <= MAX_HOPS; count += 1) {
    const response = await send(hop.request);
    const location = response.headers.get("location");
    if (!REDIRECTS.includes(response.status) || location === null) return response;
    await response.body?.cancel();
    if (first.redirect === "error") {
      throw shellError("redirect_limit", `${hop.request.url} redirects, and the request does not allow it`);
    }
    if (origins === undefined) origins = await pinnedOrigins(context, hop);
    hop = nextHop(context, hop, response, origins);
  }
  throw shellError("redirect_limit", `${first.url} redirects more than ${MAX_HOPS} times`, {
    limit: MAX_HOPS,
  });
}

function nextHop(
  context: ItxContext,
  { request, kept }: Hop,
  response: Response,
  origins: string[] | null,
): Hop {
  const next = context.core.nextHop({
    request: { method: request.method, url: request.url, headers: [...request.headers] },
    response: { status: response.status, headers: [...response.headers] },
    origins,
  });
  const needsBody = next.keepsBody && request.body !== null;
  if (needsBody && kept === null) {
    throw shellError(
      "redirect_body",
      `${request.url} redirects and wants the body again, which was streamed; send at most ${MAX_KEPT_BODY} bytes, or handle the redirect with redirect: "manual"`,
      { limit: MAX_KEPT_BODY },
    );
  }
  const body = needsBody ? kept : null;
  const headers = next.headers.map(([name, value]): [string, string] => [name, value]);
  return {
    request: new Request(next.url, { method: next.method, headers, body, redirect: "manual" }),
    kept: body,
  };
}

/** The origins of the secret that the request names; null when it names none. */
async function pinnedOrigins(context: ItxContext, { request, kept }: Hop): Promise<string[] | null> {
  const { core, env, projectId } = context;
  const { references } = core.scanPlaceholders({
    url: request.url,
    headers: [...request.headers],
    ...(kept === null ? {} : { body: kept }),
  });
  const [reference] = references;
  if (reference === undefined) return null;
  // A platform secret's pin is its own affair: its requests follow no redirect at all.
  if (reference.kind === "platform") return [];
  return (await secretStub(env, core, projectId, reference.path).describe()).origins;
}

async function keepBody(request: Request): Promise<Hop> {
  const bare = { method: request.method, headers: request.headers, redirect: "manual" } as const;
  if (request.body === null) return { request: new Request(request.url, bare), kept: null };
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  while (bytes <= MAX_KEPT_BODY) {
    const { done, value } = await reader.read();
    if (done) {
      const kept = new Uint8Array(await new Blob(chunks).arrayBuffer());
      return { request: new Request(request.url, { ...bare, body: kept }), kept };
    }
    chunks.push(value);
    bytes += value.byteLength;
  }
  return { request: new Request(request.url, { ...bare, body: resumed(chunks, reader) }), kept: null };
}

/** What was read already, and then the rest. */
function resumed(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const chunk = chunks.shift() ?? (await reader.read()).value;
      if (chunk !== undefined) controller.enqueue(chunk);
      else {
        controller.close();
        controller.byobRequest?.respond(0);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

function isUpgrade(request: Request): boolean {
  return request.headers.get("upgrade")?.toLowerCase() === "websocket";
}
