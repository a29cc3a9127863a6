/** How the commands of this folder speak: results to one side, refusals with their code to the other. */
import { SandboxError } from "../js/src/core/error.ts";

export interface Say {
  log(line: string): void;
  error(line: string): void;
}

/** Prints a refusal and gives the exit status for it. Anything else is a fault and goes on. */
export function reportRefusal(error: unknown, say: Say): number {
  if (!(error instanceof SandboxError)) throw error;
  say.error(`${error.code}: ${error.message}`);
  return 1;
}
