import { isDeepStrictEqual } from "node:util";
import type { BirthRecord } from "../../../js/src/core/types.ts";
import { type Fields, isObject, refusal } from "./refuse.ts";

interface Request {
  path: string;
  claim: Fields | null;
  record: BirthRecord | null;
  inFlight: boolean;
  input: Fields | null;
}

const PATH = /^\/sandboxes\/(?!(?:\.|%2e){1,2}$)[A-Za-z0-9._~!$&'()*+,;=:@|[\]^%-]+$/i;
const TYPES: readonly unknown[] = ["lite", "basic", "standard-1", "standard-2", "standard-3", "standard-4"];
const FIELDS = ["path", "instanceType", "sleepAfter", "keepAlive", "env", "allowRawSecrets"];

function readInput(input: Fields) {
  const { instanceType = "basic", sleepAfter = null, keepAlive = null, env = null } = input;
  if (Object.keys(input).some((key) => !FIELDS.includes(key))) throw refusal("invalid_input", "field");
  if (!TYPES.includes(instanceType)) throw refusal("invalid_instance_type", String(instanceType));
  const seconds = typeof sleepAfter === "string" ? Number(/^(\d+)[smh]$/.exec(sleepAfter)?.[1]) : sleepAfter;
  if (seconds !== null && !(typeof seconds === "number" && seconds > 0)) {
    throw refusal("invalid_sleep_after", String(sleepAfter));
  }
  if (keepAlive !== null && typeof keepAlive !== "boolean") throw refusal("invalid_input", "keepAlive");
  if (env !== null && !isObject(env)) throw refusal("invalid_input", "env");
  for (const [key, value] of Object.entries(env ?? {})) {
    if (typeof value !== "string") throw refusal("invalid_input", `env.${key}`);
    if (!/^[A-Za-z_]\w*$/.test(key) || value.includes("\0")) throw refusal("invalid_env", key);
  }
  return { instanceType, sleepAfter, keepAlive, env };
}

/** What a call may do with a path, given what is claimed and recorded of it. */
export function resolveClaim({ path, claim, record, inFlight, input }: Request): Fields {
  const claimed = isObject(claim?.payload) ? claim.payload : claim;
  const first = claimed === null ? null : readInput(claimed);
  const wanted = input === null ? null : readInput(input);
  if (!PATH.test(path)) throw refusal("invalid_path", path);
  if (claimed !== null && claimed.path !== path) throw refusal("identity_mismatch", path);
  if (record?.destroyed) throw refusal("sandbox_destroyed", path);
  const finished = record !== null && !record.creationPending;
  if (wanted === null) {
    if (claimed === null && record === null) throw refusal("sandbox_not_found", path);
    if (!finished) throw refusal("creation_unfinished", path);
    return { outcome: "use" };
  }
  if (finished) throw refusal("sandbox_exists", path);
  if (first === null) return { outcome: "claim", event: claimEvent(path, wanted) };
  if (inFlight) throw refusal("creation_in_progress", path);
  if (first.instanceType !== wanted.instanceType) throw refusal("instance_type_mismatch", path);
  const comparable = ({ sleepAfter, keepAlive, env }: typeof first) => [
    sleepAfter,
    keepAlive ?? false,
    env ?? {},
  ];
  if (!isDeepStrictEqual(comparable(first), comparable(wanted))) throw refusal("creation_unfinished", path);
  return record?.createdAt === undefined
    ? { outcome: "resume" }
    : { outcome: "resume", createdAt: record.createdAt };
}

function claimEvent(
  path: string,
  { instanceType, sleepAfter, keepAlive, env }: ReturnType<typeof readInput>,
) {
  return {
    type: "events.iterate.com/sandbox/create-requested",
    idempotencyKey: `sandbox-create-requested:${path}`,
    payload: {
      path,
      instanceType,
      ...(sleepAfter === null ? {} : { sleepAfter }),
      ...(keepAlive === null ? {} : { keepAlive }),
      ...(env === null || Object.keys(env).length === 0 ? {} : { env }),
    },
  };
}
