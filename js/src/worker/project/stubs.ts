import type { Core } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import type { SecretDurableObject } from "../secret/secret-durable-object.ts";
import type { ProjectDurableObject } from "./project-durable-object.ts";

/** The object that is a project's door. */
export function projectStub(
  env: Pick<WorkerEnv, "PROJECT">,
  core: Core,
  projectId: string,
): DurableObjectStub<ProjectDurableObject> {
  return env.PROJECT.getByName(core.durableObjectName({ projectId, path: "/" }));
}

/** The only object that ever holds this secret's material. */
export function secretStub(
  env: Pick<WorkerEnv, "SECRET">,
  core: Core,
  projectId: string,
  path: string,
): DurableObjectStub<SecretDurableObject> {
  return env.SECRET.getByName(core.durableObjectName({ projectId, path }));
}
