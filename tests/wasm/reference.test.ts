import { expect, it } from "vitest";
import { resolveClaim } from "../bench/reference/catalogue.ts";
import { rewriteOpenAiRequest } from "../bench/reference/openai.ts";
import { scanPlaceholders } from "../bench/reference/placeholders.ts";
import { ReferencePolicy } from "../bench/reference/policy.ts";
import { foldProjection } from "../bench/reference/projection.ts";
import { readVectors } from "./files.ts";
import { type Caller, failuresOf, type Vector } from "./vectors.ts";

/** How a vector's arguments go to what the benchmarks compare the core with. */
type Adapter = (input: never, body: string | undefined) => { value: unknown; body?: Uint8Array };
const bytes = (text: string) => new TextEncoder().encode(text);

const adapters: Record<string, Adapter> = {
  foldProjection: ({ events, state }: { events: unknown; state?: object }, body) => ({
    value: foldProjection(body === undefined ? events : bytes(body), state),
  }),
  resolveClaim: (input: Parameters<typeof resolveClaim>[0]) => ({ value: resolveClaim(input) }),
  scanPlaceholders: (input: { url: string }, body) => ({
    value: scanPlaceholders(body === undefined ? input : { ...input, body }),
  }),
  rewriteOpenAiRequest: (input: Parameters<typeof rewriteOpenAiRequest>[0], body) => {
    const rewrite = rewriteOpenAiRequest({ ...input, body });
    if (rewrite.notRouted !== undefined) return { value: rewrite };
    const { body: rewritten, ...value } = rewrite;
    return typeof rewritten === "string" ? { value, body: bytes(rewritten) } : { value };
  },
  decideEgressOnce: (
    {
      policy,
      request,
    }: {
      policy: ConstructorParameters<typeof ReferencePolicy>[0];
      request: Parameters<ReferencePolicy["decide"]>[0];
    },
    body,
  ) => {
    const { body: rewritten, ...value } = new ReferencePolicy(policy).decide(
      body === undefined ? request : { ...request, body },
    );
    if (value.kind === "deny") return { value: withoutProse({ ...value, body: "" }) };
    return typeof rewritten === "string" ? { value, body: bytes(rewritten) } : { value };
  },
};

/** What a person reads is worded in the core and nowhere else. */
function withoutProse(expected: unknown): unknown {
  if (typeof expected !== "object" || expected === null || !("detail" in expected)) return expected;
  return { ...expected, detail: "", body: "" };
}

const reference: Caller = {
  call(name, input, body) {
    const adapter = adapters[name];
    if (adapter === undefined || typeof input === "string") throw new Error(`no adapter for ${name}`);
    return adapter(input as never, body as string | undefined);
  },
};

it.each(["projection", "catalogue", "placeholders", "openai", "egress"])(
  "the benchmarks' JavaScript answers every vector of %s that it has a function for",
  (domain) => {
    const vectors = readVectors(`${domain}.json`)
      .filter(({ call, input }) => call in adapters && input !== undefined)
      .map((vector): Vector => ({ ...vector, expect: withoutProse(vector.expect) }));
    expect(vectors.length).toBeGreaterThan(20);
    expect(failuresOf(reference, vectors)).toEqual([]);
  },
);
