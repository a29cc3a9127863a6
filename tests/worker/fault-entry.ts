/** The Worker as it is built, with a listener at the checkpoints of its sandbox objects: `/faults` arms it and tells what it saw. */
import type { WorkerEnv } from "../../js/src/worker/env.ts";
import worker from "../../js/src/worker/index.ts";
import { onCheckpoint } from "../../js/src/worker/sandbox/checkpoint.ts";

export * from "../../js/src/worker/index.ts";

/** Every point since the last arming, in order; the object is ended at this one of them, once. */
let seen: string[] = [];
let endAt: number | null = null;

onCheckpoint((point) => {
  seen.push(point);
  if (endAt === null || seen.length !== endAt) return false;
  endAt = null;
  return true;
});

const tested: ExportedHandler<WorkerEnv> = {
  async fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/faults" && request.method === "POST") {
      const at = searchParams.get("at");
      seen = [];
      endAt = at === null ? null : Number(at);
      return new Response(null, { status: 204 });
    }
    if (pathname === "/faults") return Response.json({ seen, armed: endAt !== null });
    if (worker.fetch === undefined) throw new TypeError("the Worker has no fetch handler");
    return worker.fetch(request, env, ctx);
  },
};

export default tested;
