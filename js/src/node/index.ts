export { SandboxError } from "../core/error.ts";
export { type ConnectOptions, connect, type ItxConnection } from "./client.ts";
export { type DevEngine, type DevEngineOptions, startDevEngine } from "./dev-engine.ts";
export type * from "./itx.ts";
export { type OpenOptions, open, type Project } from "./open.ts";
export { type Server, type ServerOptions, startServer } from "./server.ts";
