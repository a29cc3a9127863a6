import { isDeepStrictEqual } from "node:util";
import { isSandboxError } from "../../js/src/core/error.ts";
import type { Core } from "../../js/src/core/types.ts";

/** One decision: what is asked, and what must be answered. */
export interface Vector {
  id: string;
  call: string;
  input?: object;
  /** The arguments as JSON text, for what no value prints as. */
  inputText?: string;
  /** Travels beside the arguments. */
  body?: string;
  expect?: unknown;
  /** An answer without a body leaves the one that was given. */
  expectBody?: string;
  /** A code. */
  error?: string;
  why: string;
}

/** What answers vectors. */
export type Caller = Pick<Core, "call">;

/** What is wrong with the answers, a line each; empty when all is well. */
export function failuresOf(core: Caller, vectors: readonly Vector[]): string[] {
  return vectors.flatMap((vector) => {
    const failure = failureOf(core, vector);
    return failure === null ? [] : [`${vector.id}: ${failure}`];
  });
}

function failureOf(core: Caller, vector: Vector): string | null {
  try {
    const { value, body } = core.call(vector.call, vector.inputText ?? vector.input ?? {}, vector.body);
    if (vector.error !== undefined) return `wanted ${vector.error}, got ${JSON.stringify(value)}`;
    if (!isDeepStrictEqual(value, vector.expect)) {
      return `wanted ${JSON.stringify(vector.expect)}, got ${JSON.stringify(value)}`;
    }
    if (vector.expectBody === undefined) return null;
    const text = body === undefined ? vector.body : new TextDecoder().decode(body);
    return text === vector.expectBody ? null : `wanted the body ${vector.expectBody}, got ${text}`;
  } catch (error) {
    if (!isSandboxError(error)) return `threw ${String(error)}`;
    return error.code === vector.error
      ? null
      : `wanted ${vector.error ?? "a value"}, got ${error.code}: ${error.message}`;
  }
}
