import createModule from "#wasm/core.factory.js";
import { SandboxError } from "./error.ts";

/** What embind exports; see `bindings/embind.cpp`. Addresses and lengths are in bytes. */
interface WasmModule {
  HEAPU8: Uint8Array;
  HEAPU32: Uint32Array;
  reserve(bytes: number): number;
  call(index: number, used: number, hasBody: boolean): number;
  functionNames(): string;
}

export interface Answer {
  value: unknown;
  body?: Uint8Array;
}

type Wire =
  | { value: unknown }
  | {
      error: {
        code: string;
        message: string;
        details: Record<string, unknown>;
        status: number;
        retryable: boolean;
      };
    };

const LENGTH_BYTES = 4;
/** As `kMaxInputBytes` in limits.hpp: the check must come before the copy. */
const MAX_INPUT_BYTES = 32 * 1024 * 1024;
/** Up to this size a text's bytes are not counted first: room for three bytes a UTF-16 unit is reserved. */
const SMALL_TEXT = 64 * 1024;

/**
 * The only place that touches wasm memory. Arguments go as JSON text, written with `encodeInto` into the core's scratch
 * buffer, and at most one run of bytes beside them.
 */
export class Boundary {
  readonly #module: WasmModule;
  readonly #indices: Map<string, number>;
  readonly #encoder = new TextEncoder();
  readonly #decoder = new TextDecoder();

  constructor(module: WasmModule) {
    this.#module = module;
    this.#indices = new Map(
      module
        .functionNames()
        .split(" ")
        .map((name, index) => [name, index]),
    );
  }

  /** @throws SandboxError for every refusal of the core */
  call(name: string, input: object, body?: string | Uint8Array): Answer {
    return this.callText(name, JSON.stringify(input), body);
  }

  /** With arguments that are JSON text already. */
  callText(name: string, json: string, body?: string | Uint8Array): Answer {
    const index = this.#indices.get(name);
    if (index === undefined) throw unknownFunction(name);
    try {
      return this.#run(index, json, body);
    } catch (error) {
      if (error instanceof WebAssembly.RuntimeError) throw coreFailed(name, error);
      throw error;
    }
  }

  /** Size of the wasm memory: it grows and never shrinks. */
  memoryBytes(): number {
    return this.#module.HEAPU8.length;
  }

  #run(index: number, json: string, body: string | Uint8Array | undefined): Answer {
    if (typeof body === "string") requireWellFormed(body);
    const jsonRoom = this.#room(json);
    const bodyRoom = body === undefined ? 0 : typeof body === "string" ? this.#room(body) : body.length;
    const address = this.#reserve(jsonRoom + bodyRoom);
    const heap = this.#module.HEAPU8;
    const start = address + LENGTH_BYTES;
    const jsonLength = this.#encoder.encodeInto(json, heap.subarray(start, start + jsonRoom)).written;
    const bodyLength = this.#writeBody(body, heap, start + jsonLength, bodyRoom);
    for (let byte = 0; byte < LENGTH_BYTES; byte++) heap[address + byte] = (jsonLength >>> (8 * byte)) & 255;
    return this.#read(this.#module.call(index, LENGTH_BYTES + jsonLength + bodyLength, body !== undefined));
  }

  #writeBody(body: string | Uint8Array | undefined, heap: Uint8Array, start: number, room: number): number {
    if (body === undefined) return 0;
    if (typeof body === "string") {
      return this.#encoder.encodeInto(body, heap.subarray(start, start + room)).written;
    }
    heap.set(body, start);
    return body.length;
  }

  /** Bytes that surely hold the text. */
  #room(text: string): number {
    if (text.length <= SMALL_TEXT) return text.length * 3;
    if (text.length > MAX_INPUT_BYTES) throw tooLarge(text.length);
    return utf8Length(text);
  }

  /** Asked before every call: the core gives the buffer of a large one back. */
  #reserve(bytes: number): number {
    if (bytes > MAX_INPUT_BYTES) throw tooLarge(bytes);
    const address = this.#module.reserve(bytes + LENGTH_BYTES);
    if (address === 0) throw outOfMemory();
    return address;
  }

  #read(places: number): Answer {
    const { HEAPU8: bytes, HEAPU32: words } = this.#module;
    const word = (index: number): number => words[(places >>> 2) + index] ?? 0;
    const text = this.#decoder.decode(bytes.subarray(word(0), word(0) + word(1)));
    const wire: Wire = JSON.parse(text);
    if ("error" in wire) throw new SandboxError(wire.error);
    if (word(2) === 0) return { value: wire.value };
    return { value: wire.value, body: bytes.slice(word(2), word(2) + word(3)) };
  }
}

/** Makes an instance of a compiled module. */
export async function connect(module: WebAssembly.Module): Promise<Boundary> {
  const wasm = await createModule({
    instantiateWasm(imports, receive) {
      receive(new WebAssembly.Instance(module, imports), module);
      return {};
    },
  });
  return new Boundary(wasm);
}

function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) length += unit >= 0x800 && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return length;
}

/** `encodeInto` would quietly replace half a surrogate pair; the bytes would not be the caller's any more. */
function requireWellFormed(text: string): void {
  if (/\p{Surrogate}/u.test(text)) {
    throw new SandboxError({
      code: "invalid_input",
      message: "The body has half a surrogate pair, which no UTF-8 can hold. Pass bytes instead.",
      details: { field: "body", got: "a lone surrogate", allowed: "well-formed text or bytes" },
      status: 400,
      retryable: false,
    });
  }
}

function tooLarge(bytes: number): SandboxError {
  return new SandboxError({
    code: "input_too_large",
    message: `The input has ${bytes} bytes; the limit is ${MAX_INPUT_BYTES}. Send it in smaller pieces.`,
    details: { what: "input", bytes, limit: MAX_INPUT_BYTES },
    status: 413,
    retryable: false,
  });
}

function outOfMemory(): SandboxError {
  return new SandboxError({
    code: "out_of_memory",
    message: "There is not enough memory for the input. Send it in smaller pieces.",
    details: { what: "input" },
    status: 503,
    retryable: true,
  });
}

function unknownFunction(name: string): SandboxError {
  return new SandboxError({
    code: "unknown_function",
    message: `The core has no function "${name}". The wasm and the JavaScript are from different builds.`,
    details: { name },
    status: 400,
    retryable: false,
  });
}

/** A trap is a bug of the core; its state cannot be trusted after it. */
function coreFailed(name: string, error: WebAssembly.RuntimeError): SandboxError {
  return new SandboxError({
    code: "core_failed",
    message: `The core failed in "${name}": ${error.message}. Please report this with the input.`,
    details: { name },
    status: 500,
    retryable: false,
  });
}
