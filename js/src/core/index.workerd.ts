import module from "#wasm/core.wasm";
import { connect } from "./boundary.ts";
import { makeCore } from "./core.ts";
import type { Core } from "./types.ts";

export { isSandboxError, SandboxError, type SandboxErrorFields } from "./error.ts";
export type * from "./types.ts";

let loaded: Promise<Core> | undefined;

/** The core of this isolate. Workers may not compile bytes: the module was imported, and is instantiated once. */
export function loadCore(): Promise<Core> {
  loaded ??= connect(module).then(makeCore);
  return loaded;
}
