/** How a refusal reaches a person, and a script. */
import color from "picocolors";
import { SandboxError } from "../core/error.ts";

/** Ends the command with a status that is its result, not a failure to be reported. */
export class ExitStatus extends Error {
  readonly status: number;
  constructor(status: number) {
    super(`exit status ${status}`);
    this.status = status;
  }
}

/** What a person asked to remove and is not there: most likely a name that was mistyped. */
export function nothingToRemove(code: string, what: string, details: Record<string, unknown>): SandboxError {
  return new SandboxError({ code, message: `there is no ${what}`, details, status: 404, retryable: false });
}

/** How capnweb and the runtime say that the other side went away in the middle. */
const LOST = /disconnected prematurely|Peer closed WebSocket|RPC session was shut down/;
const LOST_MESSAGE =
  "the server or the sandbox's container ended in the middle; what was running is gone. Start the server if it ended, and call again";

export interface Report {
  code: string;
  message: string;
  details?: unknown;
}

/** The stable code and the message of any error; never a stack. */
export function describeError(error: unknown): Report {
  if (!(error instanceof Error)) return { code: "internal_error", message: String(error) };
  if (LOST.test(error.message)) return { code: "connection_lost", message: LOST_MESSAGE };
  const code = "code" in error && typeof error.code === "string" ? error.code : "internal_error";
  return { code, message: error.message, ...("details" in error ? { details: error.details } : {}) };
}

/** Prints the error on standard error, as JSON where JSON was asked for, and gives the exit status. */
export function reportError(error: unknown, json: boolean, status = 1): number {
  const report = describeError(error);
  console.error(
    json ? JSON.stringify({ error: report }) : `${color.red(`itx: ${report.code}:`)} ${report.message}`,
  );
  return status;
}
