/** Which interceptor takes a request: the first registered one that matches (ENGINE: same address replaces in place, nothing removes). */
import type { Intercept } from "./protocol.ts";

export interface OutboundTarget {
  scheme: "http" | "https";
  /** Name or literal address, without brackets. */
  host: string;
  port: number;
}

/** The first interceptor that covers the target, or null. */
export function matchIntercept(intercepts: readonly Intercept[], target: OutboundTarget): Intercept | null {
  return intercepts.find((intercept) => covers(intercept, target)) ?? null;
}

function covers({ kind, address }: Intercept, target: OutboundTarget): boolean {
  if (kind === "all") return target.scheme === "http";
  return kind === target.scheme && addressMatches(address.toLowerCase(), target);
}

function addressMatches(address: string, { host, port }: OutboundTarget): boolean {
  const name = host.toLowerCase().replace(/\.+$/, "");
  if (address === "*" || address === name) return true;
  const withPort = /^(?:\[([0-9a-f:.]+)\]|([^:]+)):(\d+)$/.exec(address);
  if (withPort !== null) {
    return Number(withPort[3]) === port && globMatches(withPort[1] ?? withPort[2] ?? "", name);
  }
  return address.includes("/") ? inNetwork(address, name) : globMatches(address, name);
}

/** `*` stands for any run of characters, as in the containers library. */
function globMatches(pattern: string, name: string): boolean {
  if (!pattern.includes("*")) return pattern === name;
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(name);
}

function inNetwork(network: string, address: string): boolean {
  const slash = network.lastIndexOf("/");
  const base = addressBits(network.slice(0, slash));
  const bits = addressBits(address);
  const prefix = Number(network.slice(slash + 1));
  if (base === null || bits === null || base.width !== bits.width) return false;
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > base.width) return false;
  const shift = BigInt(base.width - prefix);
  return base.value >> shift === bits.value >> shift;
}

function addressBits(text: string): { value: bigint; width: 32 | 128 } | null {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const bytes = text.split(".").map(Number);
    if (bytes.some((byte) => byte > 255)) return null;
    return { value: bytes.reduce((value, byte) => value * 256n + BigInt(byte), 0n), width: 32 };
  }
  if (!/^[0-9a-f:]+$/.test(text) || !text.includes(":")) return null;
  const [head = "", tail, extra] = text.split("::");
  if (extra !== undefined) return null;
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const missing = 8 - left.length - right.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return null;
  const groups = [...left, ...Array<string>(tail === undefined ? 0 : missing).fill("0"), ...right];
  if (groups.some((group) => !/^[0-9a-f]{1,4}$/.test(group))) return null;
  return { value: groups.reduce((value, group) => value * 65536n + BigInt(`0x${group}`), 0n), width: 128 };
}
