/** The host's own entrypoint for a stock application, whose default export is the user's. */
import { WorkerEntrypoint } from "cloudflare:workers";
import type { EngineEnv } from "./container.ts";
import { engineEntry } from "./entry.ts";

export class EngineEntrypoint extends WorkerEntrypoint<EngineEnv> {
  override fetch(request: Request): Promise<Response> {
    const answer = engineEntry(request, this.env, this.ctx);
    return answer ?? Promise.resolve(new Response("Not found", { status: 404 }));
  }
}
