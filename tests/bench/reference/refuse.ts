import { SandboxError } from "../../../js/src/core/error.ts";

/** The same class as the core throws: what is compared is the code. */
export function refusal(code: string, message: string): SandboxError {
  return new SandboxError({ code, message, details: {}, status: 400, retryable: false });
}

export type Fields = Record<string, unknown>;

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
