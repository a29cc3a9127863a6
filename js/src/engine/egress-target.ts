/** Where an intercepted request wants to go: what it was connected to, named in TLS and named in its head has to be one host. */
import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import { headerPairs } from "./http-forward.ts";
import type { InterceptedConnection } from "./protocol.ts";

export interface EgressConnection extends InterceptedConnection {
  scheme: "http" | "https";
}

export interface RequestTarget {
  scheme: "http" | "https";
  host: string;
  port: number;
  /** Absolute, with the path and query as they were sent. */
  url: string;
  connection: EgressConnection;
}

export interface TargetRefusal {
  status: number;
  code: string;
  message: string;
}

/** The relay's line: `{"kind":"tcp","destination":"<ip>","port":443,"host":"<name>"}`, the name only where one was resolved. */
export function parseRelayLine(line: string): InterceptedConnection | null {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  if (typeof value !== "object" || value === null || !("destination" in value) || !("port" in value))
    return null;
  const { destination, port } = value;
  if (typeof destination !== "string" || typeof port !== "number" || isIP(destination) === 0) return null;
  const name = "host" in value && typeof value.host === "string" && value.host !== "" ? value.host : null;
  return { target: name ?? destination, port, sni: null };
}

/** The request's target, or why its parts do not agree. */
export function describeTarget(
  incoming: Pick<IncomingMessage, "rawHeaders" | "url" | "method">,
  connection: EgressConnection,
): RequestTarget | TargetRefusal {
  const pairs = headerPairs(incoming.rawHeaders);
  const hosts = pairs.filter(([name]) => name.toLowerCase() === "host");
  const [only] = hosts;
  if (only === undefined || hosts.length !== 1) {
    return bad(`the request has ${hosts.length} Host headers; exactly one is allowed`);
  }
  const encodings = pairs.filter(([name]) => name.toLowerCase() === "transfer-encoding");
  if (encodings.some(([, value]) => value.toLowerCase() !== "chunked") || encodings.length > 1) {
    return bad("the only transfer encoding allowed is one `chunked`");
  }
  if (encodings.length === 1 && pairs.some(([name]) => name.toLowerCase() === "content-length")) {
    return bad("Content-Length and Transfer-Encoding together are refused");
  }
  const authority = parseAuthority(only[1], connection.scheme);
  if (authority === null)
    return bad(`the Host header ${JSON.stringify(only[1])} is not a host with an optional port`);
  const path = requestPath(incoming.url ?? "", connection.scheme, authority);
  if (path === null) {
    return misdirected(`the request line names ${JSON.stringify(incoming.url)}, the Host header ${only[1]}`);
  }
  return agree(connection, authority, only[1], path);
}

interface Authority {
  host: string;
  port: number;
}

function agree(
  connection: EgressConnection,
  authority: Authority,
  host: string,
  path: string,
): RequestTarget | TargetRefusal {
  const { scheme, port } = connection;
  const target = canonicalHost(connection.target);
  if (target !== authority.host) {
    return misdirected(`the connection goes to ${connection.target}, the Host header names ${host}`);
  }
  if (connection.sni !== null && canonicalHost(connection.sni) !== authority.host) {
    return misdirected(`TLS names ${connection.sni}, the Host header names ${host}`);
  }
  if (authority.port !== port) {
    return misdirected(`the connection goes to port ${port}, the Host header names port ${authority.port}`);
  }
  const shown = isIP(authority.host) === 6 ? `[${authority.host}]` : authority.host;
  const url = `${scheme}://${shown}${port === defaultPort(scheme) ? "" : `:${port}`}${path}`;
  return { scheme, host: authority.host, port, url, connection };
}

/** Case, a trailing dot and the spellings of an address aside. */
function canonicalHost(host: string): string | null {
  return parseAuthority(isIP(host) === 6 ? `[${host}]` : host, "http")?.host ?? null;
}

function parseAuthority(text: string, scheme: "http" | "https"): Authority | null {
  if (!/^(\[[0-9a-f:.]+\]|[^\s/?#@\\:[\]%]+)(:\d{1,5})?$/i.test(text)) return null;
  const address = `${scheme}://${text}/`;
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
  return host === "" ? null : { host, port: url.port === "" ? defaultPort(scheme) : Number(url.port) };
}

/** The path of origin form, or of an absolute form that names the same origin; null for anything else. */
function requestPath(target: string, scheme: "http" | "https", authority: Authority): string | null {
  if (target.startsWith("/")) return target;
  if (target === "*") return "/";
  const absolute = /^(https?):\/\/([^/?#]*)([/?].*)?$/i.exec(target);
  if (absolute === null || absolute[1]?.toLowerCase() !== scheme) return null;
  const named = parseAuthority(absolute[2] ?? "", scheme);
  if (named === null || named.host !== authority.host || named.port !== authority.port) return null;
  const path = absolute[3] ?? "/";
  return path.startsWith("/") ? path : `/${path}`;
}

function defaultPort(scheme: "http" | "https"): number {
  return scheme === "https" ? 443 : 80;
}

function bad(message: string): TargetRefusal {
  return { status: 400, code: "bad_request", message };
}

function misdirected(message: string): TargetRefusal {
  return {
    status: 421,
    code: "misdirected_request",
    message: `${message}; they have to name one host and port`,
  };
}
