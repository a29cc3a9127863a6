import { refusal } from "./refuse.ts";

/** A URL as it would be fetched. */
export interface Target {
  url: URL;
  scheme: "http" | "https" | "ws" | "wss";
  /** Without the final dot; IPv6 without its brackets. */
  host: string;
  isAddress: boolean;
  port: number;
}

const SCHEME = /^(https?|wss?):/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: URL drops these without a word
const CONTROL = /[\x00-\x1f\x7f]/;
const NON_ASCII_HOST = /^[a-z]+:[/\\]*[^/\\?#]*[^\p{ASCII}]/iu;

export function parseTarget(text: string): Target {
  const url = SCHEME.test(text) && !CONTROL.test(text) ? URL.parse(text) : null;
  if (url === null || NON_ASCII_HOST.test(text) || /["`{}]/.test(url.hostname)) {
    throw refusal("invalid_url", "no URL of a host");
  }
  const scheme = url.protocol.slice(0, -1) as Target["scheme"];
  const host = plainHost(url.hostname);
  return {
    url,
    scheme,
    host,
    isAddress: isAddress(host),
    port: Number(url.port) || (scheme === "https" || scheme === "wss" ? 443 : 80),
  };
}

/** `[::ffff:7f00:1]` is 127.0.0.1, and `example.com.` is `example.com`. */
export function plainHost(hostname: string): string {
  const mapped = /^\[::ffff:([0-9a-f]+):([0-9a-f]+)\]$/.exec(hostname);
  if (mapped === null) return hostname.replace(/^\[|\]$|\.$/g, "");
  return dotted(Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16));
}

const dotted = (high: number, low: number) => [high >> 8, high & 255, low >> 8, low & 255].join(".");

export const isAddress = (host: string) => /^\d+(\.\d+){3}$|:/.test(host);

/** `%6D` is `m`, `%2e%2e` was a dot segment (which URL took out), and other escapes are upper case. */
export function canonicalPath(path: string): string {
  return path
    .replace(/%([0-9a-f]{2})/gi, (escaped, digits: string) => {
      const character = String.fromCharCode(Number.parseInt(digits, 16));
      return /[\w.~-]/.test(character) ? character : escaped.toUpperCase();
    })
    .replace(/[{}"<>`]/g, (character) => encodeURIComponent(character));
}

/** Percent-decoded, where the bytes are text; as it is where not. */
export function decodePart(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    try {
      return decodeURIComponent(escapes);
    } catch {
      return escapes;
    }
  });
}

const NAMES: [RegExp, string][] = [
  [/(^|\.)localhost$|^localhost\.localdomain$|^ip6-(localhost|loopback)$/, "loopback"],
  [
    /^(metadata(\.google\.internal|\.goog|\.azure\.internal|\.internal)?|instance-data(\.ec2\.internal)?)$/,
    "metadata",
  ],
];
const METADATA =
  /^(169\.254\.169\.254|169\.254\.170\.(2|23)|100\.100\.100\.200|192\.0\.0\.192|168\.63\.129\.16)$/;
const IPV4: [RegExp, string][] = [
  [METADATA, "metadata"],
  [/^0\.0\.0\.0$/, "unspecified"],
  [/^0\./, "reserved"],
  [/^10\./, "private"],
  [/^100\.(6[4-9]|[789]\d|1[01]\d|12[0-7])\./, "shared"],
  [/^127\./, "loopback"],
  [/^169\.254\./, "link-local"],
  [/^172\.(1[6-9]|2\d|3[01])\./, "private"],
  [/^192\.0\.0\./, "reserved"],
  [/^192\.168\./, "private"],
  [/^198\.1[89]\./, "reserved"],
  [/^(22[4-9]|23\d)\./, "multicast"],
  [/^(2[45]\d)\./, "reserved"],
];
const IPV6: [RegExp, string][] = [
  [/^::$/, "unspecified"],
  [/^::1$/, "loopback"],
  [/^(fd00:ec2|fd20:ce)::254$/, "metadata"],
  [/^fe[89ab]/, "link-local"],
  [/^fe[cdef]/, "private"],
  [/^f[cd]/, "unique-local"],
  [/^ff/, "multicast"],
  [/^100::/, "reserved"],
];

const classIn = (table: [RegExp, string][], text: string) =>
  table.find(([pattern]) => pattern.test(text))?.[1] ?? "public";

/** `public`, or why nobody is let there without a rule that names it. */
export function classOf(host: string): string {
  if (!isAddress(host)) return classIn(NAMES, host);
  if (!host.includes(":")) return classIn(IPV4, host);
  // Addresses that hold an IPv4 address: the last, or after 2002, 32 bits.
  const embedded = /^(?:64:ff9b::|::)([0-9a-f]+):([0-9a-f]+)$|^2002:([0-9a-f]+):([0-9a-f]+):/.exec(host);
  if (embedded === null) return classIn(IPV6, host);
  const [high, low] = [embedded[1] ?? embedded[3], embedded[2] ?? embedded[4]];
  return classIn(IPV4, dotted(Number.parseInt(high ?? "", 16), Number.parseInt(low ?? "", 16)));
}
