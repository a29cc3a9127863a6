/**
 * What the Worker side (`container.ts`, `entry.ts`) and the host say to each other. Every message is one HTTP request over a
 * socket that only this user can open; what it is for stands in `x-engine-*` headers, so that the target, host and body of a
 * request to a container's port stay exactly as they were.
 */

/** The headers of the engine. None of them ever reaches a container or an origin, and none is taken from one. */
export const engineHeader = {
  /** Worker to host: the operation. */
  operation: "x-engine-operation",
  /** Both ways: the Durable Object's id. */
  container: "x-engine-container",
  /** Worker to host: which life of the container is meant. */
  incarnation: "x-engine-incarnation",
  /** Worker to host: the port of a port fetch. */
  port: "x-engine-port",
  /** Worker to host, on an upload to the agent: the name by which a later `writeFileStream` may ask for what it has placed. */
  placed: "x-engine-placed",
  /** Host to Worker in answers: an {@link EngineErrorCode}. */
  error: "x-engine-error",
  /** Host to Worker: proves that the host is calling. */
  secret: "x-engine-secret",
  /** Host to Worker: the intercepted request's absolute URL. */
  url: "x-engine-url",
  /** Host to Worker: the key of the interceptor that matched. */
  interceptor: "x-engine-interceptor",
  /** Host to Worker: the connection the request came over, JSON. */
  connection: "x-engine-connection",
  /** Worker to host, on requests that leave: the secret, when a rule names a non-public address literally. */
  allowAddress: "x-engine-allow-address",
} as const;

export const engineHeaderPrefix = "x-engine-";

/** How the door learns over which connection an intercepted request came. Set by the entry, never taken from a sandbox. */
export const connectionHeader = "x-iterate-connection";

export type EngineOperation = "start" | "monitor" | "destroy" | "signal" | "intercept" | "port";

export const operations: readonly EngineOperation[] = [
  "start",
  "monitor",
  "destroy",
  "signal",
  "intercept",
  "port",
];

export type EngineErrorCode = "not_listening" | "not_running" | "connection_lost" | "refused";

/** Which outbound traffic an interceptor covers; `all` is every plain HTTP request. */
export type InterceptKind = "http" | "https" | "all";

export interface Intercept {
  kind: InterceptKind;
  address: string;
}

/** The body of `start`. */
export interface StartMessage {
  className: string;
  instanceType: string;
  enableInternet: boolean;
  env: Record<string, string>;
  entrypoint: string[];
  labels: Record<string, string>;
  intercepts: Intercept[];
}

/** The answer to `start` and `monitor`: how a container's life ended. */
export type Outcome =
  | { kind: "exited"; exitCode: number; reason?: string }
  /** It never ran: what was wrong and what to do. */
  | { kind: "failed"; message: string };

/** How a container ended, for people: its own status or signal, or what the engine ended it for. */
export function endReason(outcome: Outcome): string {
  if (outcome.kind === "failed") return outcome.message;
  const { exitCode, reason } = outcome;
  if (reason === "killed") return `killed by signal ${exitCode - 128}`;
  if (reason === undefined || reason === "exited") return `exited with status ${exitCode}`;
  return reason;
}

/** The connection of an intercepted request, as the door checks it. */
export interface InterceptedConnection {
  /** The name the client had resolved, or the literal address it connected to. */
  target: string;
  port: number;
  /** The name in the TLS hello; null over plain HTTP and for a literal address. */
  sni: string | null;
}

/** The Worker's paths for the host. */
export const enginePath = {
  egress: "/__engine/egress",
  exited: "/__engine/exited",
  sleep: "/__engine/sleep",
} as const;
/** How the Worker answers when it is asked to put a container's sandbox to sleep; anything else is a failure. */
export const sleepStatus = { done: 204, unsupported: 501 } as const;
export const enginePathPrefix = "/__engine/";

export function interceptKey(intercept: Intercept): string {
  return `${intercept.kind} ${intercept.address}`;
}
