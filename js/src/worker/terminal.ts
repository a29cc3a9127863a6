/**
 * A terminal of a sandbox over one WebSocket. It is an endpoint and not a method, since sockets cross neither capnweb nor Workers RPC:
 * binary messages are what is typed and shown, text messages are the SDK's own control messages.
 */
import { loadCore } from "#core";
import { SandboxTarget } from "../itx/sandbox-target.ts";
import { projectAccess } from "./access.ts";
import type { WorkerEnv } from "./env.ts";
import { invalidArgument } from "./errors.ts";

/** The session that the SDK opens for a sandbox without a name of the SDK's own. */
const DEFAULT_SESSION = "sandbox-default";
const MAX_SIZE = 1_000;

/**
 * `/terminal?path=/sandboxes/main[&cols][&rows][&shell][&session]`
 * @throws SandboxError
 */
export async function serveTerminal(request: Request, env: WorkerEnv): Promise<Response> {
  const core = await loadCore();
  const { projectId } = await projectAccess(request, env, core);
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") {
    throw invalidArgument("upgrade", request.headers.get("upgrade") ?? undefined, "a WebSocket upgrade");
  }
  const { searchParams } = new URL(request.url);
  const path = core.assertSandboxPath(searchParams.get("path") ?? "");
  const terminal = new URLSearchParams({ sessionId: searchParams.get("session") ?? DEFAULT_SESSION });
  for (const name of ["cols", "rows"]) {
    const value = searchParams.get(name);
    if (value !== null) terminal.set(name, sizeOf(name, value));
  }
  const shell = searchParams.get("shell");
  if (shell !== null) terminal.set("shell", shell);
  const object = await new SandboxTarget({ env, core, projectId, objectStreams: false }, path).object();
  // A request of its own: the client's token and headers are nobody's business in there.
  return object.fetch(
    new Request(`http://localhost/ws/pty?${terminal}`, {
      headers: { upgrade: "websocket", connection: "Upgrade" },
    }),
  );
}

function sizeOf(name: string, value: string): string {
  const size = Number(value);
  if (!Number.isInteger(size) || size < 1 || size > MAX_SIZE) {
    throw invalidArgument(name, value, `a whole number from 1 to ${MAX_SIZE}`);
  }
  return value;
}
