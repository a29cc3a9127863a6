import type { Core } from "../../core/types.ts";
import type { CatalogueObject, StreamObject, WorkerEnv } from "../env.ts";

/** The stream of all claims; it has a class of its own, since it keeps an index beside the events. */
export const CATALOGUE_PATH = "/sandboxes";

/** The object that holds a project's stream at this path. Addressing it writes nothing. */
export function streamStub(
  env: Pick<WorkerEnv, "STREAM" | "CATALOGUE">,
  core: Core,
  projectId: string,
  path: string,
): StreamObject {
  if (path === CATALOGUE_PATH) return catalogueStub(env, core, projectId);
  return env.STREAM.getByName(core.durableObjectName({ projectId, path }));
}

export function catalogueStub(
  env: Pick<WorkerEnv, "CATALOGUE">,
  core: Core,
  projectId: string,
): CatalogueObject {
  return env.CATALOGUE.getByName(core.durableObjectName({ projectId, path: CATALOGUE_PATH }));
}
