import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { connect } from "../../js/src/core/boundary.ts";
import { makeCore } from "../../js/src/core/core.ts";
import { loadCore } from "../../js/src/core/index.ts";
import type { EgressPolicyDocument, EgressRequest } from "../../js/src/core/types.ts";
import { readVectors } from "./files.ts";
import { type Caller, failuresOf } from "./vectors.ts";

/** The public functions that do not send their arguments as JSON must answer the vectors as those that do. */
const core = await loadCore();
const bytes = (text: string) => new TextEncoder().encode(text);

const adapters: Record<string, (input: never, body: string | undefined) => unknown> = {
  foldProjection: (_, body) => core.foldProjection(bytes(body ?? "")),
  scanPlaceholders: (input: Parameters<typeof core.scanPlaceholders>[0], body) =>
    core.scanPlaceholders(body === undefined ? input : { ...input, body }),
  decideEgressOnce: (
    {
      policy,
      request,
    }: { policy: EgressPolicyDocument; request: Omit<EgressRequest, "webSocket"> & { webSocket?: boolean } },
    body,
  ) => {
    using compiled = core.compileEgressPolicy(policy);
    const { body: answered, ...decision } = compiled.decide({
      webSocket: false,
      ...request,
      body: body ?? "",
    });
    return decision.kind === "deny" ? { ...decision, body: answered } : decision;
  },
};

const caller: Caller = {
  call: (name, input, body) => ({ value: adapters[name]?.(input as never, body as string | undefined) }),
};

it.each(["projection", "placeholders", "egress"])("bare texts answer the vectors of %s", (domain) => {
  const vectors = readVectors(`${domain}.json`)
    .filter(({ call, input }) => call in adapters && input !== undefined)
    .filter(({ call, body }) => call !== "foldProjection" || body !== undefined)
    // The public face gives hosts to the platform's URL first, which the vectors leave out.
    .filter(({ input }) => !/[^\p{ASCII}]/u.test(JSON.stringify(input)))
    .map(({ expectBody: _, ...vector }) => vector);
  expect(vectors.length).toBeGreaterThan(2);
  expect(failuresOf(caller, vectors)).toEqual([]);
});

it("refuses bytes of nothing as the very first call", async () => {
  const wasm = readFileSync(createRequire(import.meta.url).resolve("#wasm/core.wasm"));
  const module: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [wasm]);
  const fresh = makeCore(await connect(module));
  expect(() => fresh.foldProjection(new Uint8Array())).toThrow(
    expect.objectContaining({ code: "invalid_json" }),
  );
});

it("folds bytes from the first event as it folds the events", () => {
  const events = readVectors("projection.json").flatMap(({ input }) => {
    const given = new Map<string, unknown>(Object.entries(input ?? {}));
    return Array.isArray(given.get("events")) && !given.has("state") ? [given.get("events")] : [];
  });
  expect(events.length).toBeGreaterThan(10);
  const attempt = (run: () => object) => {
    try {
      return run();
    } catch (error) {
      return { refused: error instanceof Error && "code" in error ? error.code : error };
    }
  };
  for (const batch of events) {
    const folded = attempt(() => core.foldProjection(batch as never));
    expect(attempt(() => core.foldProjection(bytes(JSON.stringify(batch))))).toEqual(folded);
  }
});
