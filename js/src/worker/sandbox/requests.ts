/** From what a caller hands in to what the core and the SDK are asked. */
import type { LifecycleRequest, LifecycleState } from "../../core/types-lifecycle.ts";
import { invalidArgument } from "../errors.ts";

export function setEnvVarsRequest(
  changes: unknown,
  options: { allowRawSecrets?: boolean },
): LifecycleRequest {
  if (typeof changes !== "object" || changes === null || Array.isArray(changes)) {
    throw invalidArgument("envVars", changes, "an object of names and values");
  }
  const given = Object.entries(changes).map(([key, value]) => [key, value ?? null] as const);
  return {
    kind: "setEnvVars",
    changes: Object.fromEntries(given),
    ...(options.allowRawSecrets === true && { allowRawSecrets: true }),
  };
}

export function isLeaving({ life }: LifecycleState): boolean {
  return life.kind === "live" && ["snapshotting", "tearingDown"].includes(life.container.kind);
}

export async function callMethod(target: object, method: string, args: unknown[]): Promise<unknown> {
  const found: unknown = Reflect.get(target, method, target);
  if (typeof found !== "function") throw invalidArgument("method", method, "one that this SDK has");
  const calls: Promise<unknown>[] = [];
  const answer: unknown = await Reflect.apply(
    found,
    target,
    args.map((value) => noted(value, calls)),
  );
  // An answer and a callback travel on their own: what was called back has arrived before the call ends.
  await Promise.all(calls);
  return answer;
}

/** The argument with every callback in it made to note its calls. */
function noted(value: unknown, calls: Promise<unknown>[]): unknown {
  if (typeof value === "function") {
    return (...values: unknown[]) => {
      const done = Promise.resolve(Reflect.apply(value, undefined, values));
      calls.push(done.catch(() => undefined));
      return done;
    };
  }
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, noted(member, calls)]));
}
