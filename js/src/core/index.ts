import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { connect } from "./boundary.ts";
import { makeCore } from "./core.ts";
import type { Core } from "./types.ts";

export { isSandboxError, SandboxError, type SandboxErrorFields } from "./error.ts";
export type * from "./types.ts";

let loaded: Promise<Core> | undefined;

/** The core of this process. In Node its bytes are read and compiled, once. */
export function loadCore(): Promise<Core> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Core> {
  const path = createRequire(import.meta.url).resolve("#wasm/core.wasm");
  // The Workers' types, which this tree is checked with, have no way to compile bytes.
  const module: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [await readFile(path)]);
  return makeCore(await connect(module));
}
