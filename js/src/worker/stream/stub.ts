import type { Core } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import type { CatalogueDurableObject } from "./catalogue-durable-object.ts";
import type { StreamDurableObject } from "./stream-durable-object.ts";

/** The stream of all claims; it has a class of its own, since it keeps an index beside the events. */
export const CATALOGUE_PATH = "/sandboxes";

/** The object that holds a project's stream at this path. Addressing it writes nothing. */
export function streamStub(
  env: Pick<WorkerEnv, "STREAM" | "CATALOGUE">,
  core: Core,
  projectId: string,
  path: string,
): DurableObjectStub<StreamDurableObject> | DurableObjectStub<CatalogueDurableObject> {
  if (path === CATALOGUE_PATH) return catalogueStub(env, core, projectId);
  return env.STREAM.getByName(core.durableObjectName({ projectId, path }));
}

export function catalogueStub(
  env: Pick<WorkerEnv, "CATALOGUE">,
  core: Core,
  projectId: string,
): DurableObjectStub<CatalogueDurableObject> {
  return env.CATALOGUE.getByName(core.durableObjectName({ projectId, path: CATALOGUE_PATH }));
}
