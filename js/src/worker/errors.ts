/**
 * Errors of the shell itself: what no decision of the core can know, such as a missing binding or a refused token. Together with
 * `core.errorCatalogue()` this table is every code a client can meet.
 */
import { SandboxError } from "../core/error.ts";

interface ShellErrorInfo {
  readonly status: number;
  readonly retryable: boolean;
  readonly meaning: string;
}

export const shellErrors = {
  invalid_argument: { status: 400, retryable: false, meaning: "An argument of a call is missing or wrong." },
  unauthorized: { status: 401, retryable: false, meaning: "The token is missing, wrong or expired." },
  not_found: { status: 404, retryable: false, meaning: "The Worker has no such endpoint." },
  configuration_missing: {
    status: 500,
    retryable: false,
    meaning: "A variable or binding is missing or unreadable.",
  },
  unknown_method: { status: 404, retryable: false, meaning: "There is no method of this name." },
  batch_too_large: {
    status: 413,
    retryable: false,
    meaning: "A batch of events is larger than a stream takes.",
  },
  wait_timeout: { status: 408, retryable: true, meaning: "What was waited for did not happen in time." },
  stream_reserved: { status: 403, retryable: false, meaning: "Only the system appends to this stream." },
  secret_not_found: { status: 404, retryable: false, meaning: "No secret is stored at this path." },
  secret_key_unknown: {
    status: 500,
    retryable: false,
    meaning: "A secret is sealed under a key that is not configured.",
  },
  connection_invalid: {
    status: 400,
    retryable: false,
    meaning: "A connection is not one that a project can hold.",
  },
  body_too_large: {
    status: 413,
    retryable: false,
    meaning: "A request body is larger than can be looked into.",
  },
  redirect_limit: { status: 502, retryable: false, meaning: "A request was redirected too often." },
  redirect_body: {
    status: 502,
    retryable: false,
    meaning: "A redirect asks for a body again that was streamed.",
  },
  gateway_not_configured: {
    status: 502,
    retryable: false,
    meaning: "An OpenAI request has no gateway to go through.",
  },
  upstream_unreachable: {
    status: 502,
    retryable: true,
    meaning: "The target of a request could not be reached.",
  },
  internal_error: { status: 500, retryable: false, meaning: "The system itself failed." },
} as const satisfies Record<string, ShellErrorInfo>;

export type ShellErrorCode = keyof typeof shellErrors;

export function shellError(
  code: ShellErrorCode,
  message: string,
  details: Record<string, unknown> = {},
): SandboxError {
  const { status, retryable } = shellErrors[code];
  return new SandboxError({ code, message, details, status, retryable });
}

/** A bad argument: its name, what came, what is allowed. */
export function invalidArgument(argument: string, got: unknown, allowed: string): SandboxError {
  return shellError("invalid_argument", `${argument} is ${show(got)}; it must be ${allowed}`, {
    argument,
    got: show(got),
    allowed,
  });
}

/** A short spelling of a value for a message; never the whole of something long. */
export function show(value: unknown): string {
  if (value === undefined) return "missing";
  if (typeof value === "function") return "a function";
  const text = safeJson(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? typeof value;
  } catch {
    return typeof value;
  }
}
