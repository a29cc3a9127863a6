/** What `create` was given, checked before anything is written anywhere. */
import type { Core } from "../core/types.ts";
import { invalidArgument } from "../worker/errors.ts";
import type { ClaimInput } from "../worker/stream/catalogue-durable-object.ts";
import { CREATE_REQUESTED } from "../worker/stream/claim-index.ts";
import { defined, objectArgument, optionsArgument } from "./arguments.ts";

const MEMBERS = ["instanceType", "sleepAfter", "keepAlive", "env", "allowRawSecrets"];

/** @throws SandboxError for a type, an environment or a duration that would be refused later */
export function createInput(
  core: Core,
  path: string,
  value: unknown,
): { claim: ClaimInput; allowRawSecrets: boolean } {
  const given = optionsArgument("input", value, MEMBERS);
  const instanceType = instanceTypeOf(core, given.instanceType);
  const { sleepAfter, keepAlive, allowRawSecrets = false } = given;
  if (sleepAfter !== undefined) {
    if (typeof sleepAfter !== "string" && typeof sleepAfter !== "number") {
      throw invalidArgument("sleepAfter", sleepAfter, "a number of seconds, or digits with s, m or h");
    }
    core.validateSleepAfter(sleepAfter);
  }
  if (keepAlive !== undefined && typeof keepAlive !== "boolean") {
    throw invalidArgument("keepAlive", keepAlive, "true or false");
  }
  if (typeof allowRawSecrets !== "boolean") {
    throw invalidArgument("allowRawSecrets", allowRawSecrets, "true or false");
  }
  const env = given.env === undefined ? undefined : environmentOf(core, given.env, allowRawSecrets);
  const claim: ClaimInput = { instanceType, ...defined({ sleepAfter, keepAlive, env }) };
  core.validateEvent({ type: CREATE_REQUESTED, payload: { path, ...claim } });
  return { claim, allowRawSecrets };
}

/** The table's default where none is given; the core says which there are. */
function instanceTypeOf(core: Core, value: unknown): string {
  const types = core.instanceTypes();
  const names = types.map(({ name }) => name);
  if (value === undefined) return "basic";
  const known = names.find((name) => name === value);
  if (known === undefined) throw invalidArgument("instanceType", value, `one of ${names.join(", ")}`);
  return known;
}

function environmentOf(core: Core, value: unknown, allowRawSecrets: boolean): Record<string, string> {
  const changes: Record<string, string> = {};
  for (const [key, member] of Object.entries(objectArgument("env", value))) {
    if (typeof member !== "string") throw invalidArgument(`env.${key}`, member, "text");
    changes[key] = member;
  }
  core.mergeEnv({ stored: {}, changes, allowRawSecrets });
  return changes;
}
