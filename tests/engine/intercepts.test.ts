import { expect, test } from "vitest";
import { matchIntercept } from "../../js/src/engine/intercepts.ts";
import type { Intercept } from "../../js/src/engine/protocol.ts";

const http = (host: string, port = 80) => ({ scheme: "http" as const, host, port });
const https = (host: string, port = 443) => ({ scheme: "https" as const, host, port });
const first = (intercepts: Intercept[], target: Parameters<typeof matchIntercept>[1]) =>
  matchIntercept(intercepts, target)?.address ?? null;

test("the first registered interceptor that covers the target wins", () => {
  const intercepts: Intercept[] = [
    { kind: "http", address: "api.example.com" },
    { kind: "https", address: "*" },
    { kind: "all", address: "*" },
  ];
  expect(matchIntercept(intercepts, http("api.example.com"))).toBe(intercepts[0]);
  expect(matchIntercept(intercepts, https("api.example.com"))).toBe(intercepts[1]);
  expect(matchIntercept(intercepts, http("other.example.com"))).toBe(intercepts[2]);
});

test("`all` is every plain HTTP request and no TLS", () => {
  expect(first([{ kind: "all", address: "*" }], https("a.example"))).toBeNull();
});

test.each([
  ["API.Example.com", http("api.example.com."), true],
  ["*.example.com", http("a.b.example.com"), true],
  ["*.example.com", http("example.com"), false],
  ["goo*gle.com", http("goooogle.com"), true],
  ["a.example:8080", http("a.example", 8080), true],
  ["a.example:8080", http("a.example", 80), false],
  ["[2001:db8::1]:80", http("2001:db8::1", 80), true],
  ["10.0.0.0/8", http("10.200.3.4"), true],
  ["10.0.0.0/8", http("11.0.0.1"), false],
  ["10.0.0.0/8", http("name.example"), false],
  ["2001:db8::/32", http("2001:db8:1::5"), true],
  ["2001:db8::/32", http("2001:db9::5"), false],
  ["10.0.0.1", http("10.0.0.1"), true],
  ["a.example", http("a-example"), false],
])("%s covers %o: %s", (address, target, covered) => {
  expect(first([{ kind: "http", address }], target) !== null).toBe(covered);
});
