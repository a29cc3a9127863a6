/**
 * How an error leaves the Worker. capnweb and Workers RPC carry an error's name, message and own properties and nothing else, so
 * the four fields that clients read are made own properties of a plain error; a stack never leaves.
 */
import { SandboxError } from "../core/error.ts";
import { shellError, shellErrors } from "./errors.ts";
import { log } from "./log.ts";
import { count } from "./metrics.ts";
import { KILLED } from "./sandbox/object.ts";
import { withNextStep } from "./sdk-errors.ts";

export interface WireFields {
  code: string;
  message: string;
  details: Record<string, unknown>;
  status: number;
  retryable: boolean;
}

/** How capnweb says that a client called what is not there. */
const UNKNOWN_METHOD = /^'(.+)' is not a function\.$/;

/** What following a path over nothing throws; a TypeError of our own code comes from elsewhere. */
const NOTHING_THERE = /^Cannot read properties of undefined \(reading '(.+)'\)$/;
const FOLLOWED = /^.*\n\s+at followPath/;
const WHAT_THERE_IS =
  "a project has sandboxes, secrets, egress, streams and connections, and __describe() of a sandbox lists its methods";

/** The error that a client gets for this one. Faults without a code are logged here, and leave as `internal_error`. */
export function wireError(error: unknown): SandboxError {
  const fields = fieldsOf(error);
  if (fields !== undefined) return new SandboxError(fields);
  const unknown = unknownMethod(error);
  if (unknown !== null) return unknown;
  if (error instanceof Error && error.message.includes(KILLED)) {
    return new SandboxError({
      code: "OPERATION_INTERRUPTED",
      message: "kill() ended the sandbox's object while this call ran; the container lives on. Call again.",
      details: {},
      status: 409,
      retryable: true,
    });
  }
  count("errors_internal");
  log("error", "call failed", { error: error instanceof Error ? error : new Error(String(error)) });
  const message = error instanceof Error ? error.message : String(error);
  const { status } = shellErrors.internal_error;
  return new SandboxError({
    code: "internal_error",
    message,
    details: {},
    status,
    retryable: retryableOf(error),
  });
}

/** What a client reached for that is not there, when that is what the error says. */
function unknownMethod(error: unknown): SandboxError | null {
  if (!(error instanceof TypeError)) return null;
  const method = UNKNOWN_METHOD.exec(error.message)?.[1];
  if (method !== undefined)
    return shellError("unknown_method", `there is no method ${method}; ${WHAT_THERE_IS}`, { method });
  const below = NOTHING_THERE.exec(error.message)?.[1];
  if (below === undefined || !FOLLOWED.test(error.stack ?? "")) return null;
  return shellError(
    "unknown_method",
    `${below} was asked of what is not there: the name before it is wrong; ${WHAT_THERE_IS}`,
    {
      method: below,
    },
  );
}

/** Runs a call of the public surface; whatever it throws leaves as a SandboxError. */
export async function onWire<T>(work: () => Promise<T> | T): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw wireError(error);
  }
}

/** The fields of our errors, and of the SDK's, also after their class was lost on the way. */
export function fieldsOf(error: unknown): WireFields | undefined {
  if (typeof error !== "object" || error === null || !("message" in error)) return undefined;
  const message = String(error.message);
  if ("errorResponse" in error) return sdkFields(error.errorResponse, message);
  if (!("code" in error) || typeof error.code !== "string" || !("status" in error)) return undefined;
  return {
    code: error.code,
    message,
    details: "details" in error ? record(error.details) : {},
    status: typeof error.status === "number" ? error.status : shellErrors.internal_error.status,
    retryable: "retryable" in error && error.retryable === true,
  };
}

/** `{ code, message, context, httpStatus }` is the SDK's shape; its codes stay as they are. */
function sdkFields(response: unknown, message: string): WireFields | undefined {
  const { code, context, httpStatus } = record(response);
  if (typeof code !== "string") return undefined;
  const status = typeof httpStatus === "number" ? httpStatus : shellErrors.internal_error.status;
  return {
    code,
    message: withNextStep(code, message),
    details: record(context),
    status,
    retryable: status === 503,
  };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? { ...value } : {};
}

function retryableOf(error: unknown): boolean {
  return typeof error === "object" && error !== null && "retryable" in error && error.retryable === true;
}
