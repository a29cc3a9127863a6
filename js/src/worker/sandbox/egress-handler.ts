/** What every sandbox class registers as its outbound handler: all of a container's traffic goes to its project's door. */
import { loadCore } from "#core";
import type { SandboxIdentity } from "../../core/types-lifecycle.ts";
import type { WorkerEnv } from "../env.ts";
import { callerHeader, errorResponse } from "../project/forward.ts";
import { projectStub } from "../project/stubs.ts";
import { sandboxNamespace } from "./namespaces.ts";

interface OutboundContext {
  containerId: string;
  className: string;
}

/**
 * Identity is write-once, so what was learned about a container's object holds as long as this isolate. Answers are kept and not
 * promises: one that belongs to a request that was given up would never settle for the others.
 */
const identities = new Map<string, SandboxIdentity>();
const MAX_IDENTITIES = 10_000;

export async function throughTheDoor(
  request: Request,
  env: unknown,
  context: OutboundContext,
): Promise<Response> {
  const core = await loadCore();
  try {
    if (!isWorkerEnv(env)) throw new TypeError("the outbound handler runs without the Worker's bindings");
    const { projectId, path } = await identityOf(env, context);
    const headers = new Headers(request.headers);
    headers.set(callerHeader, path);
    const door = projectStub(env, core, projectId);
    return await door.fetch(new Request(request, { headers, redirect: "manual" }));
  } catch (error) {
    return errorResponse(core, error);
  }
}

async function identityOf(
  env: object,
  { containerId, className }: OutboundContext,
): Promise<SandboxIdentity> {
  const key = `${className}/${containerId}`;
  const known = identities.get(key);
  if (known !== undefined) return known;
  const { projectId, path } = await askObject(env, className, containerId);
  const identity = { projectId, path };
  if (identities.size >= MAX_IDENTITIES) identities.clear();
  identities.set(key, identity);
  return identity;
}

async function askObject(env: object, className: string, containerId: string): Promise<SandboxIdentity> {
  const row = (await loadCore()).instanceTypes().find((type) => type.className === className);
  if (row === undefined) throw new TypeError(`${className} hosts no instance type`);
  const namespace = sandboxNamespace(env, row.binding);
  return namespace.get(namespace.idFromString(containerId)).egressIdentity();
}

function isWorkerEnv(env: unknown): env is WorkerEnv {
  return typeof env === "object" && env !== null && "PROJECT" in env && "STREAM" in env;
}
