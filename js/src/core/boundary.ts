import createModule from "#wasm/core.factory.js";
import { SandboxError } from "./error.ts";

/** What `bindings/wasm.cpp` exports. Addresses and lengths are in bytes. */
interface WasmModule {
  HEAPU8: Uint8Array;
  HEAPU32: Uint32Array;
  _core_reserve(bytes: number): number;
  _core_call(index: number, used: number, hasBody: number): number;
  _core_call_fields(
    index: number,
    handle: number,
    count: number,
    textBytes: number,
    used: number,
    hasBody: number,
  ): number;
  _core_function_names(): number;
}

export interface Answer {
  value: unknown;
  /** Instead of the value: texts, in the order that the function's codec says. */
  fields?: string[];
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
/** As in boundary.cpp: less is never reserved. */
const SMALLEST_SCRATCH = 4096;
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
  #scratch: Uint8Array = new Uint8Array();

  constructor(module: WasmModule) {
    this.#module = module;
    const names = this.#text(module._core_function_names()).split(" ");
    this.#indices = new Map(names.map((name, index) => [name, index]));
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

  /**
   * For the calls that are made for every request or batch: the arguments go as bare texts, in the order that the function's
   * codec in `bindings/` says. Undefined where they are not so plain: then the caller calls with JSON, and hears what is wrong.
   */
  callFields(
    name: string,
    fields: readonly unknown[],
    { handle = 0, body }: { handle?: number; body?: string | Uint8Array | undefined } = {},
  ): Answer | undefined {
    const index = this.#indices.get(name);
    if (index === undefined) return undefined;
    for (const field of fields) if (typeof field !== "string") return undefined;
    try {
      const places = this.#runFields(index, fields, handle, body);
      return places === 0 ? undefined : this.#read(places);
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
    const room = this.#room(json) + this.#bodyRoom(body);
    const scratch = this.#reserve(room, LENGTH_BYTES);
    const jsonLength = this.#encoder.encodeInto(json, scratch.subarray(LENGTH_BYTES)).written;
    const used = LENGTH_BYTES + jsonLength + this.#writeBody(body, scratch, LENGTH_BYTES + jsonLength);
    for (let byte = 0; byte < LENGTH_BYTES; byte++) scratch[byte] = (jsonLength >>> (8 * byte)) & 255;
    return this.#read(this.#module._core_call(index, used, body === undefined ? 0 : 1));
  }

  #runFields(
    index: number,
    fields: readonly unknown[],
    handle: number,
    body: string | Uint8Array | undefined,
  ): number {
    if (typeof body === "string") requireWellFormed(body);
    const text = fields.join("\0");
    if (text.length > SMALL_TEXT) return 0;
    const scratch = this.#reserve(text.length + this.#bodyRoom(body), 0);
    // More bytes than characters: not ASCII, perhaps not even well-formed.
    if (text !== "" && this.#encoder.encodeInto(text, scratch).written !== text.length) return 0;
    const used = text.length + this.#writeBody(body, scratch, text.length);
    const hasBody = body === undefined ? 0 : 1;
    return this.#module._core_call_fields(index, handle, fields.length, text.length, used, hasBody);
  }

  #bodyRoom(body: string | Uint8Array | undefined): number {
    if (body === undefined) return 0;
    return typeof body === "string" ? this.#room(body) : body.length;
  }

  #writeBody(body: string | Uint8Array | undefined, scratch: Uint8Array, start: number): number {
    if (body === undefined) return 0;
    if (typeof body === "string") return this.#encoder.encodeInto(body, scratch.subarray(start)).written;
    scratch.set(body, start);
    return body.length;
  }

  /** Bytes that surely hold the text. */
  #room(text: string): number {
    if (text.length <= SMALL_TEXT) return text.length * 3;
    if (text.length > MAX_INPUT_BYTES) throw tooLarge(text.length);
    return utf8Length(text);
  }

  /** The scratch buffer. Asked for before every call: the core gives that of a large one back. */
  #reserve(input: number, lengths: number): Uint8Array {
    if (input > MAX_INPUT_BYTES) throw tooLarge(input);
    const bytes = input + lengths;
    const address = this.#module._core_reserve(bytes);
    if (address === 0) throw outOfMemory();
    const heap = this.#module.HEAPU8;
    const { buffer, byteOffset, length } = this.#scratch;
    // A view costs as much as all else here; most calls have the same one.
    if (buffer !== heap.buffer || byteOffset !== address || length < bytes) {
      this.#scratch = heap.subarray(address, address + Math.max(bytes, SMALLEST_SCRATCH));
    }
    return this.#scratch;
  }

  #word(places: number, index: number): number {
    return this.#module.HEAPU32[(places >>> 2) + index] ?? 0;
  }

  #text(places: number): string {
    const start = this.#word(places, 0);
    return this.#decoder.decode(this.#module.HEAPU8.subarray(start, start + this.#word(places, 1)));
  }

  #read(places: number): Answer {
    const text = this.#text(places);
    if (!text.startsWith("{")) return { value: undefined, fields: text.split("\0") };
    const wire: Wire = JSON.parse(text);
    if ("error" in wire) throw new SandboxError(wire.error);
    const start = this.#word(places, 2);
    if (start === 0) return { value: wire.value };
    return {
      value: wire.value,
      body: this.#module.HEAPU8.slice(start, start + this.#word(places, 3)),
    };
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
