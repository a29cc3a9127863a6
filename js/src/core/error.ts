/** What the core says about a refusal; the same five fields everywhere, also over RPC. */
export interface SandboxErrorFields {
  /** Stable snake_case code. */
  code: string;
  message: string;
  details: Record<string, unknown>;
  /** The HTTP status that fits. */
  status: number;
  /** Whether the same call may succeed later without a change. */
  retryable: boolean;
}

/** The one error class of this package: every refusal of the core and of what is built on it. */
export class SandboxError extends Error {
  override readonly name = "SandboxError";
  readonly code: string;
  readonly details: Record<string, unknown>;
  readonly status: number;
  readonly retryable: boolean;

  constructor(fields: SandboxErrorFields) {
    super(fields.message);
    this.code = fields.code;
    this.details = fields.details;
    this.status = fields.status;
    this.retryable = fields.retryable;
  }

  toJSON(): SandboxErrorFields {
    const { code, message, details, status, retryable } = this;
    return { code, message, details, status, retryable };
  }
}

/** True for a SandboxError of this or another copy of the class, and for one that crossed an RPC boundary. */
export function isSandboxError(error: unknown): error is SandboxError {
  return error instanceof Error && "code" in error && typeof error.code === "string" && "retryable" in error;
}
