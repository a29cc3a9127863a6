/** From the core's table of bindings to the namespaces of this Worker. */
import { shellError } from "../errors.ts";
import type { SandboxObject } from "./object.ts";

export interface SandboxNamespace {
  getByName(name: string): SandboxObject;
  get(id: DurableObjectId): SandboxObject;
  idFromString(id: string): DurableObjectId;
}

/** @throws SandboxError `configuration_missing` where the Worker has no such binding */
export function sandboxNamespace(env: object, binding: string): SandboxNamespace {
  const found: unknown = Reflect.get(env, binding);
  if (isNamespace(found)) return found;
  throw shellError(
    "configuration_missing",
    `the Worker has no Durable Object binding ${binding}; wrangler's configuration lists one for each instance type`,
    { binding },
  );
}

function isNamespace(value: unknown): value is SandboxNamespace {
  return typeof value === "object" && value !== null && "getByName" in value && "idFromString" in value;
}
