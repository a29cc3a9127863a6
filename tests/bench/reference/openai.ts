import type { GatewayOptions, HeaderPairs, OpenAiRewrite } from "../../../js/src/core/types.ts";
import { findReferences } from "./placeholders.ts";
import { isObject, refusal } from "./refuse.ts";
import { parseTarget, type Target } from "./url.ts";

type Body = string | Uint8Array;

export interface OpenAiRequest {
  method: string;
  headers: HeaderPairs;
  body?: Body | undefined;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

const values = (headers: HeaderPairs, wanted: string) =>
  headers.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);

export const asksForWebSocket = (headers: HeaderPairs) =>
  values(headers, "upgrade").some((value) => /(^|,)\s*websocket\s*(,|$)/i.test(value));

/** Where the call would go, or why it is none of the gateway's. */
export function routeOpenAi(
  request: OpenAiRequest,
  { url, scheme, host, port }: Target,
  rawUrl: string,
  webSocket: boolean,
  gateway: GatewayOptions,
): OpenAiRewrite {
  const no = (notRouted: string): OpenAiRewrite => ({ notRouted });
  if (host !== "api.openai.com" || port !== (scheme === "http" || scheme === "ws" ? 80 : 443)) {
    return no("not_openai");
  }
  if (webSocket || scheme.startsWith("ws") || asksForWebSocket(request.headers)) return no("websocket");
  if (!/^(post|put)$/i.test(request.method)) return no("method");
  const endpoint = endpointOf(rawUrl, url);
  if (endpoint === null) return no("path");
  const types = values(request.headers, "content-type");
  if (types.length !== 1 || !/^\s*application\/json\s*(;|$)/i.test(types[0] ?? "")) return no("content_type");
  if (!gateway.apiKey) return no("no_api_key");
  const read = readBody(request.body ?? "");
  if (read === null) return no("body");
  const body = addUsage(endpoint, request.body ?? "", read);
  const cache =
    gateway.cacheTtlSeconds === null || gateway.cacheTtlSeconds === undefined
      ? {}
      : { cacheKeyInput: `${endpoint}\n${canonical(textOf(body))}` };
  return { endpoint, headers: gatewayHeaders(request.headers, gateway), body, ...cache };
}

/** The path after `/v1/` and the query, as written; a path that a client would rewrite is none. */
function endpointOf(raw: string, { search }: URL): string | null {
  const path = /^[a-z]+:[/\\]*[^/\\?#]*([^?#]*)/i.exec(raw)?.[1] ?? "";
  if (!path.startsWith("/v1/") || /^\/v1\/(\/|$)|\\/.test(path)) return null;
  const decoded = path.replaceAll(/%2f/gi, "/").replaceAll(/%2e/gi, ".");
  if (/\/\.\.?(\/|$)/.test(decoded)) return null;
  const query = /\?[^#]*/.exec(raw)?.[0] ?? search;
  return path.slice("/v1/".length) + query;
}

const textOf = (body: Body) => (typeof body === "string" ? body : decoder.decode(body));

function readBody(body: Body): { text: string; fields: Record<string, unknown> } | null {
  try {
    const text = textOf(body);
    const fields: unknown = JSON.parse(text);
    return isObject(fields) ? { text, fields } : null;
  } catch {
    return null;
  }
}

/** The body with `stream_options.include_usage` where a streaming caller left it out; else the very same. */
function addUsage(
  endpoint: string,
  body: Body,
  { text, fields }: { text: string; fields: Record<string, unknown> },
): Body {
  const { stream, stream_options: options } = fields;
  if (stream !== true || /^responses([/?]|$)/.test(endpoint)) return body;
  const wantsUsage = !Object.hasOwn(fields, "stream_options") || options === null || isObject(options);
  if (!wantsUsage || (isObject(options) && Object.hasOwn(options, "include_usage"))) return body;
  const edited = insertUsage(text, options);
  return typeof body === "string" ? edited : encoder.encode(edited);
}

function insertUsage(text: string, options: unknown): string {
  const usage = '"include_usage":true';
  if (options === undefined) {
    const end = text.lastIndexOf("}");
    return `${text.slice(0, end)},"stream_options":{${usage}}${text.slice(end)}`;
  }
  const start = startOfOptions(text);
  if (options === null) return `${text.slice(0, start)}{${usage}}${text.slice(start + "null".length)}`;
  const comma = Object.keys(Object(options)).length === 0 ? "" : ",";
  return `${text.slice(0, start + 1)}${usage}${comma}${text.slice(start + 1)}`;
}

/** Where the value of the last `stream_options` of the outermost object begins. */
function startOfOptions(text: string): number {
  let depth = 0;
  let start = -1;
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:\s*)?|[{[]|[}\]]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && /:\s*$/.test(token)) {
      const key: unknown = JSON.parse(token.slice(0, token.lastIndexOf(":")));
      if (key === "stream_options") start = index + token.length;
    }
  }
  return start;
}

function gatewayHeaders(callers: HeaderPairs, gateway: GatewayOptions): [string, string][] {
  const ttl = gateway.cacheTtlSeconds;
  const metadata = JSON.stringify(gateway.metadata ?? {}).replace(
    /[\x7f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return [
    ["authorization", `Bearer ${gateway.apiKey}`],
    ["content-type", "application/json"],
    ["cf-aig-metadata", metadata],
    ["cf-aig-collect-log", "true"],
    ["cf-aig-collect-log-payload", "true"],
    ttl === null || ttl === undefined ? ["cf-aig-skip-cache", "true"] : ["cf-aig-cache-ttl", String(ttl)],
    ...callers
      .map(([name, value]): [string, string] => [name.toLowerCase(), value])
      .filter(([name]) => name === "accept" || name.startsWith("openai-")),
  ];
}

/** The one text of all that mean the same: no blanks, sorted keys, numbers with the digits they came with. */
function canonical(text: string): string {
  const keepDigits = (_key: string, value: unknown, { source }: { source?: string }) =>
    typeof value === "number" ? new Digits(source ?? "") : value;
  return print(JSON.parse(text, keepDigits as Parameters<typeof JSON.parse>[1]));
}

class Digits {
  readonly source: string;
  constructor(source: string) {
    this.source = source;
  }
}

function print(value: unknown): string {
  if (value instanceof Digits) return value.source;
  if (Array.isArray(value)) return `[${value.map(print).join(",")}]`;
  if (isObject(value)) {
    const members = Object.entries(value)
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, member]) => `${printText(key)}:${print(member)}`);
    return `{${members.join(",")}}`;
  }
  return typeof value === "string" ? printText(value) : JSON.stringify(value);
}

const printText = (text: string) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what JSON escapes
  `"${text.replace(/["\\]/g, "\\$&").replace(/[\x00-\x1f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16).padStart(2, "0")}`)}"`;

export function rewriteOpenAiRequest(
  request: OpenAiRequest & { url: string; gateway: GatewayOptions },
): OpenAiRewrite {
  if ((request.gateway.cacheTtlSeconds ?? 0) < 0) throw refusal("invalid_input", "cacheTtlSeconds");
  const target = parseTarget(request.url);
  const routed = routeOpenAi(request, target, request.url, false, request.gateway);
  if (routed.notRouted !== undefined) return routed;
  try {
    if (findReferences(target, request.headers, "").length === 0) return routed;
  } catch {
    // malformed: the door says so on the normal way
  }
  return { notRouted: "placeholder" };
}
