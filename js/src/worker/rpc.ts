/** capnweb at `/rpc`: WebSocket for clients that stay, HTTP batches for single calls. */
import { newHttpBatchRpcResponse, newWebSocketRpcSession, type RpcSessionOptions } from "capnweb";
import { loadCore } from "#core";
import { Itx } from "../itx/itx.ts";
import { projectAccess } from "./access.ts";
import type { WorkerEnv } from "./env.ts";
import { count } from "./metrics.ts";
import { wireError } from "./wire.ts";

/** The close code for a connection that outlived its token. */
export const TOKEN_EXPIRED = 4001;
/** setTimeout takes no more; a token that lives longer is looked at again then. */
const LONGEST_TIMER_MS = 2_147_483_647;

/** How capnweb itself says that the client is gone: an end like any other, and nothing to log as a fault. */
const CLIENT_GONE = /^Peer closed WebSocket/;

const sessionOptions: RpcSessionOptions = {
  onSendError: (error) => (CLIENT_GONE.test(error.message) ? error : withoutStack(wireError(error))),
};

/** @throws SandboxError `unauthorized` */
export async function serveRpc(request: Request, env: WorkerEnv): Promise<Response> {
  const core = await loadCore();
  const { projectId, expiresAt } = await projectAccess(request, env, core);
  const itx = new Itx({ env, core, projectId, objectStreams: true });
  if (request.headers.get("upgrade")?.toLowerCase() === "websocket") {
    count("rpc_sessions");
    return serveSocket(itx, expiresAt);
  }
  count("rpc_batches");
  return newHttpBatchRpcResponse(request, itx, sessionOptions);
}

function serveSocket(itx: Itx, expiresAt: number): Response {
  const [client, server] = Object.values(new WebSocketPair());
  if (client === undefined || server === undefined) throw new TypeError("a WebSocketPair has two ends");
  server.accept();
  newWebSocketRpcSession(server, itx, sessionOptions);
  closeAt(server, expiresAt);
  return new Response(null, { status: 101, webSocket: client });
}

function closeAt(socket: WebSocket, expiresAt: number): void {
  const left = Math.min(expiresAt - Date.now(), LONGEST_TIMER_MS);
  const timer = setTimeout(() => {
    if (Date.now() >= expiresAt) socket.close(TOKEN_EXPIRED, "token expired");
    else closeAt(socket, expiresAt);
  }, left);
  socket.addEventListener("close", () => clearTimeout(timer));
}

/** capnweb sends the stack of a rewritten error. */
function withoutStack<T extends Error>(error: T): T {
  error.stack = "";
  return error;
}
