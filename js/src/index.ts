export { SandboxError } from "./core/error.ts";
export { loadCore } from "./core/index.ts";
export type * from "./node/itx.ts";
