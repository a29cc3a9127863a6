/** The Worker: every class that the configuration names, and the HTTP entry. */

import { engineEntry } from "../engine/entry.ts";
import { anyAccess, operatorAccess } from "./access.ts";
import type { WorkerEnv } from "./env.ts";
import { shellError } from "./errors.ts";
import { log, requestId } from "./log.ts";
import { count, renderMetrics } from "./metrics.ts";
import { serveRpc } from "./rpc.ts";
import { serveTerminal } from "./terminal.ts";
import { fieldsOf, wireError } from "./wire.ts";

export { ContainerProxy } from "@cloudflare/sandbox";
export { EngineEntrypoint } from "../engine/entrypoint.ts";
export type { WorkerEnv } from "./env.ts";
export { ItxEntrypoint } from "./itx-entrypoint.ts";
export { ProjectDurableObject } from "./project/project-durable-object.ts";
export * from "./sandbox/classes.ts";
export { SecretDurableObject } from "./secret/secret-durable-object.ts";
export { CatalogueDurableObject } from "./stream/catalogue-durable-object.ts";
export { StreamDurableObject } from "./stream/stream-durable-object.ts";

async function answer(request: Request, env: WorkerEnv): Promise<Response> {
  switch (new URL(request.url).pathname) {
    case "/rpc":
      return serveRpc(request, env);
    case "/terminal":
      return serveTerminal(request, env);
    case "/health":
      await anyAccess(request, env);
      return Response.json({ status: "ok" });
    case "/metrics":
      await operatorAccess(request, env);
      return new Response(renderMetrics(), { headers: { "content-type": "text/plain; version=0.0.4" } });
    default:
      // Without a token even "there is nothing here" is not said.
      await anyAccess(request, env);
      throw shellError("not_found", "there are /rpc, /terminal, /health and /metrics here");
  }
}

function refusal(error: unknown): Response {
  const { code, message, details, status } = fieldsOf(error) ?? wireError(error);
  if (status === 401) count("requests_refused");
  const headers = status === 401 ? { "www-authenticate": "Bearer" } : undefined;
  return Response.json({ error: { code, message, details } }, { status, ...(headers && { headers }) });
}

const worker = {
  async fetch(request, env, ctx) {
    const engine = engineEntry(request, env, ctx);
    if (engine !== null) return engine;
    const id = requestId(request);
    try {
      return await answer(request, env);
    } catch (error) {
      const response = refusal(error);
      log(response.status >= 500 ? "error" : "info", "request refused", { id, status: response.status });
      return response;
    }
  },
} satisfies ExportedHandler<WorkerEnv>;

export default worker;
