/** Who is calling, and for which project: the one place where HTTP requests are let in. */
import type { Core } from "../core/types.ts";
import type { WorkerEnv } from "./env.ts";
import { parseTokenKeys, sameSecret, unauthorized, type VerifiedToken, verifyToken } from "./tokens.ts";

export interface ProjectAccess {
  projectId: string;
  expiresAt: number;
}

/**
 * The project that a request may act in. A project's token acts in its own, whatever the request says; an operator's in the one
 * it names by `?project=` or `x-itx-project`.
 * @throws SandboxError `unauthorized`, the same for every reason
 */
export async function projectAccess(request: Request, env: WorkerEnv, core: Core): Promise<ProjectAccess> {
  const { principal, expiresAt } = await authenticate(request, env);
  const named = new URL(request.url).searchParams.get("project") ?? request.headers.get("x-itx-project");
  const projectId = principal.kind === "operator" ? named : principal.projectId;
  if (projectId === null || (named !== null && named !== projectId)) throw unauthorized();
  try {
    return { projectId: core.assertProjectId(projectId), expiresAt };
  } catch {
    throw unauthorized();
  }
}

/** @throws SandboxError `unauthorized` for anything but an operator's token */
export async function operatorAccess(request: Request, env: WorkerEnv): Promise<void> {
  const { principal } = await authenticate(request, env);
  if (principal.kind !== "operator") throw unauthorized();
}

/** Any token, or the secret of this boot, which the engine's host asks with. */
export async function anyAccess(request: Request, env: WorkerEnv): Promise<void> {
  const token = bearer(request);
  if (token !== null && env.ENGINE_SECRET !== undefined && (await sameSecret(token, env.ENGINE_SECRET)))
    return;
  await authenticate(request, env);
}

async function authenticate(request: Request, env: WorkerEnv): Promise<VerifiedToken> {
  const token = bearer(request) ?? socketToken(request);
  if (token === null) throw unauthorized();
  return verifyToken(parseTokenKeys(env.TOKEN_KEYS), token);
}

function bearer(request: Request): string | null {
  return /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;
}

/** A browser cannot set headers on a WebSocket; only there may the token stand in the address. */
function socketToken(request: Request): string | null {
  if (request.headers.get("upgrade")?.toLowerCase() !== "websocket") return null;
  return new URL(request.url).searchParams.get("token");
}
