import { WorkerEntrypoint } from "cloudflare:workers";
import { loadCore } from "#core";
import { Itx } from "../itx/itx.ts";
import type { WorkerEnv } from "./env.ts";
import { onWire } from "./wire.ts";

/** What a service binding to this entrypoint is configured with; the binding is the permission, so there is no token. */
export interface ItxProps {
  projectId: string;
}

/** `itx` of one project for another Worker: `await env.ITX.itx()`, then the same calls as over `/rpc`. */
export class ItxEntrypoint extends WorkerEntrypoint<WorkerEnv, ItxProps> {
  /** The project's API. Streams of events and states come as lines of JSON here, since only bytes cross a binding. */
  itx(): Promise<Itx> {
    return onWire(async () => {
      const core = await loadCore();
      const projectId = core.assertProjectId(this.ctx.props.projectId);
      return new Itx({ env: this.env, core, projectId, objectStreams: false });
    });
  }
}
