import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { type Boundary, connect } from "../../js/src/core/boundary.ts";
import { makeCore } from "../../js/src/core/core.ts";
import { isSandboxError } from "../../js/src/core/error.ts";
import { readVectors, vectorFiles } from "./files.ts";
import { garbage, type RawCall } from "./garbage-makers.ts";
import { random } from "./random.ts";
import type { Vector } from "./vectors.ts";

const wasm = readFileSync(createRequire(import.meta.url).resolve("#wasm/core.wasm"));
/** All of them take minutes. */
const CALLS = process.env.FULL === "1" ? 100_000 : 10_000;

/** A core of its own, whose memory nobody else grows. */
async function freshCore(): Promise<Boundary> {
  const module: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [wasm]);
  return connect(module);
}

/** The calls of all vectors, but large ones, and those whose handles nobody would free. */
function goodCalls(): { vector: Vector; call: RawCall }[] {
  return vectorFiles
    .flatMap(readVectors)
    .filter(({ call }) => call !== "createProjection" && call !== "compileEgressPolicy")
    .map((vector) => {
      const { call: name, input, inputText, body } = vector;
      return { vector, call: { name, text: inputText ?? JSON.stringify(input ?? {}), body } };
    })
    .filter(({ call }) => call.text.length + (call.body?.length ?? 0) <= 4096);
}

/** What was refused, by its code; anything but a SandboxError is thrown on. */
function refusalOf(run: () => unknown): string | null {
  try {
    run();
    return null;
  } catch (error) {
    if (!isSandboxError(error) || error.code === "core_failed") throw error;
    return error.code;
  }
}

/** The two ways in: arguments as JSON, and as bare texts for the calls that have them. */
function sendBoth(boundary: Boundary, { name, text, body }: RawCall): string | null {
  refusalOf(() => boundary.callFields(name, text.length > 4096 ? [text] : text.split(/[":,]+/), { body }));
  return refusalOf(() => boundary.callText(name, text, body));
}

it(`takes ${CALLS} calls, half of them garbage, without a trap and without growing`, async () => {
  const boundary = await freshCore();
  const dice = random(3);
  const calls = goodCalls();
  let grown = 0;
  const refusals = new Map<string, number>();
  for (let i = 0; i < CALLS; i++) {
    const { vector, call } = dice.pick(calls);
    const code =
      i % 2 === 0
        ? sendBoth(boundary, garbage(call, vector, dice))
        : refusalOf(() => boundary.callText(call.name, call.text, call.body));
    // The call after garbage is answered as it always is.
    if (i % 2 === 1 && vector.error === undefined) expect(code, vector.id).toBeNull();
    if (code !== null && i % 2 === 0) refusals.set(code, (refusals.get(code) ?? 0) + 1);
    // Half way through every buffer has its size.
    if (i === CALLS / 2) grown = boundary.memoryBytes();
  }
  const refused = [...refusals.values()].reduce((sum, count) => sum + count, 0);
  expect(refused).toBeGreaterThan(CALLS / 5);
  expect([...refusals.keys()]).toEqual(
    expect.arrayContaining(["input_too_large", "invalid_input", "invalid_json", "nesting_too_deep"]),
  );
  expect(boundary.memoryBytes()).toBe(grown);
});

it("gives the memory of handles back, freed or not", async () => {
  const boundary = await freshCore();
  const core = makeCore(boundary);
  const env = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`KEY_${i}`, "x".repeat(200)]));
  const events = [{ offset: 1, type: "events.iterate.com/sandbox/configured", payload: { env } }];
  const round = () => {
    for (let i = 0; i < 50; i++) {
      const projection = core.createProjection();
      projection.apply(events);
      projection.free();
      projection.free();
    }
  };
  round();
  const before = boundary.memoryBytes();
  for (let i = 0; i < 40; i++) round();
  expect(boundary.memoryBytes()).toBe(before);
});

it("refuses a handle that was freed, also when its place is taken again", async () => {
  const core = makeCore(await freshCore());
  const first = core.createProjection();
  first.free();
  using second = core.createProjection();
  expect(() => first.state()).toThrow(expect.objectContaining({ code: "unknown_handle" }));
  expect(second.state().offset).toBe(0);
});

it("refuses what is too large before it copies it", async () => {
  const boundary = await freshCore();
  const core = makeCore(boundary);
  const before = boundary.memoryBytes();
  const bytes = new Uint8Array(32 * 1024 * 1024 + 1);
  expect(() => core.foldProjection(bytes)).toThrow(
    expect.objectContaining({ code: "input_too_large", status: 413 }),
  );
  expect(() => core.assertSandboxPath("x".repeat(33 * 1024 * 1024))).toThrow(
    expect.objectContaining({ code: "input_too_large" }),
  );
  expect(boundary.memoryBytes()).toBe(before);
  expect(core.assertSandboxPath("/sandboxes/x")).toBe("/sandboxes/x");
});

it("refuses half a surrogate pair in arguments and bodies", async () => {
  const core = makeCore(await freshCore());
  const half = "\ud800";
  expect(() => core.assertProjectId(half)).toThrow(expect.objectContaining({ code: "invalid_json" }));
  expect(() => core.scanPlaceholders({ url: "https://a.example/", headers: [], body: half })).toThrow(
    expect.objectContaining({ code: "invalid_input" }),
  );
});

it("refuses bytes that are not UTF-8", async () => {
  const core = makeCore(await freshCore());
  for (const bytes of [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80]]) {
    const text = new Uint8Array([0x5b, 0x22, ...bytes, 0x22, 0x5d]);
    expect(() => core.foldProjection(text)).toThrow(expect.objectContaining({ code: "invalid_json" }));
  }
});
