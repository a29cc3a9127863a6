import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { type Boundary, connect } from "../../js/src/core/boundary.ts";
import { makeCore } from "../../js/src/core/core.ts";
import { isSandboxError } from "../../js/src/core/error.ts";
import { readVectors, vectorFiles } from "./files.ts";
import { random } from "./random.ts";

const wasm = readFileSync(createRequire(import.meta.url).resolve("#wasm/core.wasm"));
const CALLS = 100_000;

/** A core of its own, whose memory nobody else grows. */
async function freshCore(): Promise<Boundary> {
  const module: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [wasm]);
  return connect(module);
}

/** Text that is nearly right: cut, doubled, with bytes changed. */
function spoil(text: string, { integer, pick }: ReturnType<typeof random>): string {
  const at = integer(text.length + 1);
  const noise = [
    '"',
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\\",
    "\\ud800",
    "\u0000",
    "null",
    "1e999",
    "-",
    "\u{10ffff}",
    "ä",
  ];
  switch (integer(4)) {
    case 0:
      return text.slice(0, at);
    case 1:
      return text.slice(0, at) + pick(noise) + text.slice(at);
    case 2:
      return text.slice(0, at) + text.slice(at + 1 + integer(8));
    default:
      return text.slice(0, at) + text.slice(integer(text.length + 1));
  }
}

it(`takes ${CALLS} calls, half of them garbage, without a trap and without growing`, async () => {
  const boundary = await freshCore();
  const dice = random(3);
  // Large ones would only make it slow, and handles that nobody frees would fill the memory.
  const vectors = vectorFiles
    .flatMap(readVectors)
    .filter(({ call }) => call !== "createProjection" && call !== "compileEgressPolicy")
    .map(({ call, input, inputText, body }) => ({
      call,
      text: inputText ?? JSON.stringify(input ?? {}),
      body,
    }))
    .filter(({ text, body }) => text.length + (body?.length ?? 0) <= 4096);
  let grown = 0;
  let refused = 0;
  for (let i = 0; i < CALLS; i++) {
    const { call, text, body } = dice.pick(vectors);
    try {
      boundary.callText(
        call,
        i % 2 === 0 ? text : spoil(text, dice),
        body === undefined || i % 4 !== 1 ? body : spoil(body, dice),
      );
    } catch (error) {
      if (!isSandboxError(error) || error.code === "core_failed") throw error;
      refused++;
    }
    // Half way through every buffer has its size.
    if (i === CALLS / 2) grown = boundary.memoryBytes();
  }
  expect(refused).toBeGreaterThan(CALLS / 4);
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
