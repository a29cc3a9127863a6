import { isSandboxError } from "../../../js/src/core/error.ts";
import type {
  EgressDecision,
  EgressPolicyDocument,
  EgressRequest,
  EgressRule,
  HeaderPairs,
  OpenAiRewrite,
  SecretReference as Reference,
} from "../../../js/src/core/types.ts";
import { asksForWebSocket, routeOpenAi } from "./openai.ts";
import { findReferences, requireOneSecret } from "./placeholders.ts";
import { refusal } from "./refuse.ts";
import { canonicalPath, classOf, parseTarget, plainHost, type Target } from "./url.ts";

type Test = (text: string) => boolean;

interface CompiledRule {
  id: string;
  allow: boolean;
  hosts?: Test;
  named: Set<string>;
  schemes?: Set<string>;
  ports?: Set<number>;
  methods?: Set<string>;
  paths?: Test;
  secretPaths?: Test;
}

interface Asked {
  target: Target;
  webSocket: boolean;
  method: string;
  path: string;
  keys: string[];
}

const KNOWN = ["id", "action", "hosts", "schemes", "ports", "methods", "paths", "secretPaths"];
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
const SECRET_PATTERN =
  /^(platform:[^*]*\*?|\/secrets\/\*|\/secrets(\/(?!\.{1,2}(\/|$))[^/\s*?#%\\]+)+(\/\*)?)$/;

const invalid = (rule: string, why: string) => refusal("invalid_policy", `${rule}: ${why}`);

/** `/a/*` stands for all that begins with `/a/`. */
function anyOf(patterns: readonly string[]): Test {
  const exact = new Set(patterns.filter((one) => !one.endsWith("*")));
  const prefixes = patterns.filter((one) => one.endsWith("*")).map((one) => one.slice(0, -1));
  return (text) => exact.has(text) || prefixes.some((prefix) => text.startsWith(prefix));
}

function anyHost(rule: EgressRule, patterns: readonly string[]): { test: Test; named: Set<string> } {
  const named = new Set<string>();
  const suffixes: string[] = [];
  let every = false;
  for (const pattern of patterns) {
    const name = pattern.replace(/^\*\./, "");
    const url = /^[^/?#@\\*\P{ASCII}]+$/u.test(name) ? URL.parse(`http://${name}`) : null;
    if (pattern === "*") every = true;
    else if (url === null || /:\d*$/.test(name.replace(/^\[.*\]/, ""))) throw invalid(rule.id, pattern);
    else if (!pattern.startsWith("*.")) named.add(plainHost(url.hostname));
    else if (/\d$/.test(url.hostname) || name.startsWith("[")) throw invalid(rule.id, pattern);
    else suffixes.push(`.${plainHost(url.hostname)}`);
  }
  const test: Test = (host) => every || named.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
  return { test, named };
}

function listOf<T>(rule: EgressRule, list: readonly T[] | undefined, valid: (item: T) => boolean) {
  if (list !== undefined && (list.length === 0 || !list.every(valid))) throw invalid(rule.id, "list");
  return list;
}

function compileRule(rule: EgressRule): CompiledRule {
  if (rule.id === "" || Object.keys(rule).some((key) => !KNOWN.includes(key))) throw invalid(rule.id, "key");
  if (rule.action !== "allow" && rule.action !== "deny") throw invalid(rule.id, "action");
  const compiled: CompiledRule = { id: rule.id, allow: rule.action === "allow", named: new Set() };
  const hosts = listOf(rule, rule.hosts, () => true);
  if (hosts !== undefined) {
    const { test, named } = anyHost(rule, hosts);
    compiled.hosts = test;
    compiled.named = named;
  }
  const schemes = listOf(rule, rule.schemes, (one) => /^(https?|wss?)$/i.test(one));
  // A rule for https is one for wss too.
  if (schemes !== undefined) {
    compiled.schemes = new Set(
      schemes.map((one) => one.toLowerCase()).flatMap((one) => [one, one.replace(/^http/, "ws")]),
    );
  }
  const ports = listOf(rule, rule.ports, (one) => one >= 1 && one <= 65535);
  if (ports !== undefined) compiled.ports = new Set(ports);
  const methods = listOf(rule, rule.methods, (one) => TOKEN.test(one) && one !== "*");
  if (methods !== undefined) compiled.methods = new Set(methods.map((one) => one.toUpperCase()));
  const paths = listOf(rule, rule.paths, (one) => /^\/[^?#*]*\*?$/.test(one));
  if (paths !== undefined) compiled.paths = anyOf(paths.map(canonicalPath));
  const secretPaths = listOf(rule, rule.secretPaths, (one) => SECRET_PATTERN.test(one));
  if (secretPaths !== undefined) compiled.secretPaths = anyOf(secretPaths);
  return compiled;
}

function matches(rule: CompiledRule, { target, webSocket, method, path, keys }: Asked): boolean {
  if (rule.hosts !== undefined && !rule.hosts(target.host)) return false;
  const scheme = webSocket ? target.scheme.replace(/^http/, "ws") : target.scheme;
  return (
    (rule.schemes?.has(scheme) ?? true) &&
    (rule.ports?.has(target.port) ?? true) &&
    (rule.methods?.has(method) ?? true) &&
    (rule.paths?.(path) ?? true) &&
    (rule.secretPaths === undefined || keys.some(rule.secretPaths))
  );
}

type Denial = Pick<EgressDecision, "status" | "code" | "detail">;
type Decided = Partial<EgressDecision> & Pick<EgressDecision, "kind">;

export class ReferencePolicy {
  readonly #rules: CompiledRule[];
  readonly #defaultAllow: boolean;

  constructor({ default: fallback, rules, ...rest }: EgressPolicyDocument) {
    if (Object.keys(rest).length > 0 || (fallback !== "allow" && fallback !== "deny")) {
      throw invalid("", "default");
    }
    this.#defaultAllow = fallback === "allow";
    this.#rules = rules.map(compileRule);
    if (new Set(rules.map(({ id }) => id)).size < rules.length) throw invalid("", "an id is there twice");
  }

  decide(request: EgressRequest): EgressDecision {
    const { headers = [] } = request;
    let webSocket = request.webSocket ?? false;
    const known: { rule: string | null; references: Reference[] } = { rule: null, references: [] };
    const answer = (decided: Decided): EgressDecision => ({
      rule: known.rule,
      references: known.references,
      dropHeaders: headersToDrop(headers, webSocket),
      ...decided,
    });
    try {
      const target = parseTarget(request.url);
      webSocket ||= target.scheme.startsWith("ws") || asksForWebSocket(headers);
      return answer(this.#decide(request, target, webSocket, known));
    } catch (error) {
      if (!isSandboxError(error)) throw error;
      return answer(deny({ status: statusOf(error.code), code: error.code, detail: error.message }));
    }
  }

  #decide(
    request: EgressRequest,
    target: Target,
    webSocket: boolean,
    known: { rule: string | null; references: Reference[] },
  ): Decided {
    const { headers = [], body = "" } = request;
    const method = request.method.toUpperCase();
    if (!TOKEN.test(method) || /^(CONNECT|TRACE|TRACK)$/.test(method)) {
      throw refusal("egress_method_not_allowed", method);
    }
    requireOneHost(target, headers, request.connection?.sni);
    known.references = findReferences(target, headers, typeof body === "string" ? body : "");
    const keys = known.references.map(({ kind, path }) => (kind === "secret" ? path : `platform:${path}`));
    const asked = { target, webSocket, method, path: canonicalPath(target.url.pathname), keys };
    const rule = this.#rules.find((one) => matches(one, asked));
    known.rule = rule?.id ?? null;
    if (!(rule?.allow ?? this.#defaultAllow))
      throw refusal("egress_denied", `${method} ${target.url.origin}`);
    for (const host of [target.host, plainHost(request.connection?.address ?? "")]) {
      if (classOf(host) !== "public" && !rule?.named.has(host)) throw refusal("egress_address_denied", host);
    }
    requireOneSecret(known.references);
    if (known.references.length > 0) return { kind: "secret" };
    const gateway = request.gateway ?? null;
    if (gateway === null) return { kind: "forward" };
    return decisionOf(routeOpenAi({ method, headers, body }, target, request.url, webSocket, gateway));
  }
}

function decisionOf(routed: OpenAiRewrite): Decided {
  return routed.notRouted === undefined ? { kind: "aiGateway", ...routed } : { kind: "forward" };
}

const STATUSES: Record<string, number> = {
  egress_host_mismatch: 421,
  egress_method_not_allowed: 405,
  egress_denied: 403,
  egress_address_denied: 403,
};
const statusOf = (code: string) => STATUSES[code] ?? 400;

function deny({ status, code, detail }: Denial): Decided {
  const body = `${JSON.stringify({ error: code, code, detail })}\n`;
  return { kind: "deny", status, code, detail, body } as Decided;
}

function requireOneHost(target: Target, headers: HeaderPairs, sni: string | null | undefined): void {
  const hosts = headers.filter(([name]) => name.toLowerCase() === "host").map(([, value]) => value.trim());
  const others = hosts.map((host) =>
    /[@/\\?# ]/.test(host) ? null : URL.parse(`${target.scheme}://${host}`),
  );
  if (sni) others.push(URL.parse(`${target.scheme}://${sni}:${target.port}`));
  const same = others.every(
    (url) => url !== null && plainHost(url.hostname) === target.host && url.port === target.url.port,
  );
  if (hosts.length > 1 || !same) throw refusal("egress_host_mismatch", target.host);
}

const HOP_BY_HOP =
  /^(connection|keep-alive|proxy-(authenticate|authorization|connection)|te|trailer|transfer-encoding|upgrade)$/;
const PLATFORM =
  /^(cdn-loop|cf-(cert-presented|connecting-(ip|ipv6|o2o)|ew-via|ipcity|ipcountry|pseudo-ipv4|ray|region|visitor|warp-tag-id|worker)|true-client-ip)$/;

function headersToDrop(headers: HeaderPairs, webSocket: boolean): string[] {
  const names = headers.map(([name, value]): [string, string] => [name.toLowerCase(), value]);
  const listed = names
    .filter(([name]) => name === "connection")
    .flatMap(([, value]) =>
      value
        .toLowerCase()
        .split(",")
        .map((part) => part.trim()),
    );
  const goes = (name: string) =>
    !/^(host|authorization|content-length)$/.test(name) &&
    !(webSocket && name === "upgrade") &&
    (HOP_BY_HOP.test(name) || PLATFORM.test(name) || name.startsWith("x-iterate-") || listed.includes(name));
  return [...new Set(names.map(([name]) => name).filter(goes))];
}
