/**
 * Everything that the SDK's class offers, on each of its transports: the stock class of this package over the embedded engine,
 * through the unmodified SDK. What there is to test is read from the SDK's own prototypes and types, so that a method without
 * a case fails here, as does a case of a method that is none.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Transport } from "./case.ts";
import { cases } from "./cases/index.ts";
import { type ConformanceServer, startConformanceServer } from "./server.ts";
import { declaredMethods } from "./types.ts";

const transports: Transport[] = ["http", "websocket", "rpc"];
const declared = declaredMethods();

describe.each(transports)("over %s", (transport) => {
  let server: ConformanceServer;
  beforeAll(async () => {
    server = await startConformanceServer(transport);
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  test("every public method of the prototypes and of the types has a case, and every case a method", async () => {
    const names = await server.names();
    const offered = new Set(declared.public);
    for (const name of names.Sandbox) if (!declared.private.has(name)) offered.add(`Sandbox.${name}`);
    for (const name of names.ExecutionSession) if (name !== "id") offered.add(`ExecutionSession.${name}`);
    expect(offered.size).toBeGreaterThan(120);
    const tested = Object.entries(cases).filter(([, its]) => Object.keys(its).length > 0);
    expect(tested.map(([method]) => method).toSorted()).toEqual([...offered].toSorted());
  });

  describe.each(Object.entries(cases))("%s", (method, its) => {
    test.each(Object.keys(its))("%s", async (title) => {
      const failure = await server.run(method, title);
      if (failure !== null) throw new Error(failure);
    });
  });
});
