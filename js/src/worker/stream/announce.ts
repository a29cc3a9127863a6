import type { Core } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import { streamStub } from "./stub.ts";

/** Tells every ancestor of a new stream about it, once each: the key makes a repetition change nothing. */
export async function announceToAncestors(
  env: WorkerEnv,
  core: Core,
  identity: { projectId: string; path: string },
): Promise<void> {
  const { projectId, path } = identity;
  await Promise.all(
    core.streamAncestors(path).map((ancestor) =>
      streamStub(env, core, projectId, ancestor).append([
        {
          type: "events.iterate.com/stream/child-created",
          payload: { path },
          idempotencyKey: `child-created:${path}`,
        },
      ]),
    ),
  );
}
