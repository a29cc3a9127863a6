import type { HeaderPairs, SecretReference as Reference } from "../../../js/src/core/types.ts";
import { isObject, refusal } from "./refuse.ts";
import { decodePart, parseTarget, type Target } from "./url.ts";

const BLANK = String.raw`[ \t]*`;
const TEXT = String.raw`(?:"[^"'\\\p{Cc}]*"|'[^"'\\\p{Cc}]*')`;
const MEMBER = String.raw`(?:[A-Za-z]+|${TEXT})${BLANK}:${BLANK}${TEXT}${BLANK}`;
const OPTIONS = String.raw`\{${BLANK}${MEMBER}(?:,${BLANK}${MEMBER})*(?:,${BLANK})?\}${BLANK}(?:,${BLANK})?`;
/** What begins like a placeholder: the name, and a parenthesis (after a blank only with something quoted in it). */
const OPENING = String.raw`getSecret(?:\(|${BLANK}\(${BLANK}(?=["'{]))`;
const PLACEHOLDER = new RegExp(
  String.raw`^${OPENING}${BLANK}(?:(${TEXT})${BLANK}(?:,${BLANK}(${OPTIONS})?)?|(${OPTIONS}))\)`,
  "u",
);
const BEGINS = new RegExp(OPENING, "g");
const MEMBERS = new RegExp(String.raw`([A-Za-z]+|${TEXT})${BLANK}:${BLANK}(${TEXT})`, "gu");
const FIELD = /^(?=.{1,256}$)[^.]+(?:\.[^.]+)*$/s;
const PLATFORM = /^(?=.{1,256}$)[\w-]+(?:\.[\w-]+)*$/;
const SECRET_PATH = /^\/secrets(?:\/(?!\.{1,2}(?:\/|$))[^/\s\\?#%\p{Cc}\P{ASCII}]+)+$/u;
const BASIC = /^[ \t]*basic[ \t]+(\S.*?)[ \t]*$/i;

const unquoted = (text: string) => text.replace(/^["']|["']$/g, "");

const unparseable = (why: string) => refusal("secret_reference_unparseable", why);

/** The placeholder at the beginning of the text. */
function parsePlaceholder(text: string): { reference: Reference; length: number } {
  const match = PLACEHOLDER.exec(text);
  if (match === null) throw unparseable("not exactly a placeholder");
  const [whole, path, second, options] = match;
  const members = [...(options ?? second ?? "").matchAll(MEMBERS)].map(
    ([, key = "", value = ""]) => [unquoted(key), unquoted(value)] as const,
  );
  const named = new Map<string, string>(members);
  if (path !== undefined) named.set("path", unquoted(path));
  const allowed = path === undefined ? ["path", "field", "platform"] : ["field"];
  if (new Set(members.map(([key]) => key)).size < members.length) throw unparseable("a key is doubled");
  if (members.some(([key]) => !allowed.includes(key))) throw unparseable("a key is unknown");
  return { reference: referenceOf(named), length: whole.length };
}

function referenceOf(named: Map<string, string>): Reference {
  const [path, field, platform] = [named.get("path"), named.get("field"), named.get("platform")];
  if (platform !== undefined) {
    if (path !== undefined || field !== undefined || !PLATFORM.test(platform)) throw unparseable("platform");
    return { kind: "platform", path: platform };
  }
  if (path === undefined) throw unparseable("there is no path");
  if (!SECRET_PATH.test(path)) throw refusal("secret_reference_invalid_path", path);
  if (field === undefined) return { kind: "secret", path };
  if (!FIELD.test(field)) throw unparseable("field");
  return { kind: "secret", path, field };
}

function* placeholdersIn(text: string): Generator<Reference> {
  BEGINS.lastIndex = 0;
  for (let begin = BEGINS.exec(text); begin !== null; begin = BEGINS.exec(text)) {
    const { reference, length } = parsePlaceholder(text.slice(begin.index));
    BEGINS.lastIndex = begin.index + length;
    const resume = BEGINS.lastIndex;
    yield reference;
    BEGINS.lastIndex = resume;
  }
}

const mentions = (text: string) => text.search(BEGINS) >= 0;

function* inUrl({ url }: Target): Generator<Reference> {
  for (const part of [url.username, url.password, url.search.replaceAll("+", " "), url.hash]) {
    if (part !== "" && mentions(decodePart(part))) {
      throw refusal("secret_reference_outside_url_path", part);
    }
  }
  yield* placeholdersIn(decodePart(url.pathname));
}

function* inHeaders(headers: HeaderPairs): Generator<Reference> {
  for (const [, value] of headers) {
    yield* placeholdersIn(value);
    const basic = BASIC.exec(value)?.[1];
    if (basic !== undefined) yield* placeholdersIn(decodeBasic(basic));
  }
}

function decodeBasic(token: string): string {
  try {
    return atob(token.replace(/=+$/, "").replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return "";
  }
}

function* inBody(headers: HeaderPairs, body: string): Generator<Reference> {
  const wanted = headers.filter(([name]) => name.toLowerCase() === "x-iterate-secret-template");
  const [template] = wanted;
  if (template === undefined) return;
  if (wanted.length > 1 || template[1].trim().toLowerCase() !== "json" || body.length > 1024 * 1024) {
    throw refusal("secret_template_invalid", "template");
  }
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw refusal("secret_template_invalid", "the body is not JSON");
  }
  yield* inValue(value);
}

function* inValue(value: unknown): Generator<Reference> {
  if (Array.isArray(value)) for (const item of value) yield* inValue(item);
  else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      if (mentions(key)) throw unparseable("a key");
      yield* inValue(member);
    }
  } else if (typeof value === "string" && mentions(value)) {
    const { reference, length } = parsePlaceholder(value);
    if (length < value.length) throw unparseable("not the whole string");
    yield reference;
  }
}

/** Every reference of a request, each once. */
export function findReferences(target: Target, headers: HeaderPairs, body: string): Reference[] {
  const references = [...inUrl(target), ...inHeaders(headers), ...inBody(headers, body)];
  return [...new Map(references.map((one) => [JSON.stringify(one), one])).values()];
}

export function requireOneSecret(references: Reference[]): void {
  const [first] = references;
  if (references.some(({ kind, path }) => kind !== first?.kind || path !== first.path)) {
    throw refusal("secret_reference_foreign", "two secrets");
  }
}

export function scanPlaceholders(request: { url: string; headers?: HeaderPairs; body?: string }): {
  references: Reference[];
} {
  const references = findReferences(parseTarget(request.url), request.headers ?? [], request.body ?? "");
  requireOneSecret(references);
  return { references };
}
