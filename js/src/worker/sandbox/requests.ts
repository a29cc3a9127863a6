/** From what a caller hands in to what the core and the SDK are asked. */
import type { LifecycleRequest, LifecycleState } from "../../core/types-lifecycle.ts";
import { invalidArgument } from "../errors.ts";

export function setEnvVarsRequest(
  changes: Record<string, string | null | undefined>,
  options: { allowRawSecrets?: boolean },
): LifecycleRequest {
  if (typeof changes !== "object" || changes === null) {
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

export function callMethod(target: object, method: string, args: unknown[]): unknown {
  const found: unknown = Reflect.get(target, method, target);
  if (typeof found !== "function") throw invalidArgument("method", method, "one that this SDK has");
  return Reflect.apply(found, target, args);
}
