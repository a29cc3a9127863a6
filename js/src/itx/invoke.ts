/** One call of the SDK's surface on its way to the sandbox's object. */

import { KILLED } from "../worker/sandbox/object.ts";
import { onWire } from "../worker/wire.ts";
import { bridgeArguments } from "./bridge.ts";
import { detachCallbacks, runCallbacks } from "./process-callbacks.ts";
import type { SandboxTarget } from "./sandbox-target.ts";

/** Calls a method of the sandbox, or of one of its sessions. */
export function invoke(
  target: SandboxTarget,
  method: string,
  values: readonly unknown[],
  sessionId?: string,
): Promise<unknown> {
  return onWire(async () => {
    const { projectId } = target.context;
    const { path } = target;
    const object = await target.object();
    const session = sessionId === undefined ? {} : { sessionId };
    const send = (name: string, args: unknown[]) =>
      object
        .invoke({ projectId, path, method: name, args, ...session })
        .catch((error: unknown) => target.explain(error));
    if (method === "kill") return send(method, []).catch(unlessKilled);
    if (method !== "startProcess") {
      const calls: Promise<unknown>[] = [];
      const answer = await send(method, bridgeArguments(values, calls));
      // What a command printed has reached its callback before the call says that it has ended.
      await Promise.all(calls);
      return answer;
    }
    const detached = detachCallbacks(bridgeArguments(values));
    const process = await send(method, detached.values);
    void runCallbacks(detached.callbacks, process, (id) => send("streamProcessLogs", [id]));
    return process;
  });
}

/** The object may be gone before its answer is on the way. */
function unlessKilled(error: unknown): void {
  if (!(error instanceof Error) || !error.message.includes(KILLED)) throw error;
}
