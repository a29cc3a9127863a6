import type { Core } from "../../core/types.ts";
import type { ProjectObject, SecretObject, WorkerEnv } from "../env.ts";

/** The object that is a project's door. */
export function projectStub(env: Pick<WorkerEnv, "PROJECT">, core: Core, projectId: string): ProjectObject {
  return env.PROJECT.getByName(core.durableObjectName({ projectId, path: "/" }));
}

/** The only object that ever holds this secret's material. */
export function secretStub(
  env: Pick<WorkerEnv, "SECRET">,
  core: Core,
  projectId: string,
  path: string,
): SecretObject {
  return env.SECRET.getByName(core.durableObjectName({ projectId, path }));
}
