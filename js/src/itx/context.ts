import type { Core } from "../core/types.ts";
import type { WorkerEnv } from "../worker/env.ts";

/** What every API object of one project stands on. */
export interface ItxContext {
  readonly env: WorkerEnv;
  readonly core: Core;
  readonly projectId: string;
  /** Whether the transport carries streams of objects (capnweb); where it does not, they are lines of JSON. */
  readonly objectStreams: boolean;
}
