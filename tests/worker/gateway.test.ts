import { expect, test } from "vitest";
import { cacheKey, gatewayQuery } from "../../js/src/worker/project/gateway.ts";

test("the body keeps numbers that a double cannot hold", () => {
  const body =
    '{"a":12345678901234567890,"b":0.1,"c":1e400,"d":[9007199254740993,1.50],"e":"9007199254740993"}';
  expect(JSON.stringify(gatewayQuery(body))).toBe(body);
});

test("a cache key is the SHA-256 of the canonical body", async () => {
  expect(await cacheKey("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect(await cacheKey(new TextEncoder().encode("abc"))).toBe(await cacheKey("abc"));
});
