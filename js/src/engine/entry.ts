/** The host's door into the Worker: intercepted requests, and the news of containers whose object is not there to hear it. */
import type { EngineEnv } from "./container.ts";
import { endLife, interceptTarget } from "./lives.ts";
import {
  connectionHeader,
  engineHeader,
  engineHeaderPrefix,
  enginePath,
  enginePathPrefix,
  type Outcome,
  sleepStatus,
} from "./protocol.ts";

interface ExportsContext {
  exports: object;
}

/**
 * Answers the host's calls under `/__engine/`; null for every other path, and where there is no engine. A caller without the
 * secret of this boot is told no more than that there is nothing here.
 */
export function engineEntry(request: Request, env: EngineEnv, ctx: ExportsContext): Promise<Response> | null {
  if (env.ENGINE === undefined || env.ENGINE_SECRET === undefined) return null;
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith(enginePathPrefix)) return null;
  if (!sameSecret(request.headers.get(engineHeader.secret) ?? "", env.ENGINE_SECRET)) return notFound();
  if (pathname === enginePath.egress) return egress(request, ctx);
  if (pathname === enginePath.exited) return exited(request);
  if (pathname === enginePath.sleep) return sleep(request, ctx);
  return notFound();
}

async function egress(request: Request, ctx: ExportsContext): Promise<Response> {
  const url = request.headers.get(engineHeader.url) ?? "";
  const container = request.headers.get(engineHeader.container) ?? "";
  const target = interceptTarget(container, request.headers.get(engineHeader.interceptor) ?? "");
  const make: unknown = target === null ? null : Reflect.get(ctx.exports, target.entrypoint, ctx.exports);
  if (target === null || typeof make !== "function") {
    const code = "no_interceptor";
    return Response.json(
      { error: code, code, rule: null, detail: `nothing handles ${url}` },
      { status: 502 },
    );
  }
  const stub: unknown = Reflect.apply(make, undefined, [{ props: target.props }]);
  if (!isFetcher(stub)) throw new TypeError(`${target.entrypoint} is not an entrypoint with fetch()`);
  const headers = new Headers(request.headers);
  const connection = headers.get(engineHeader.connection);
  for (const name of [...headers.keys()]) if (name.startsWith(engineHeaderPrefix)) headers.delete(name);
  headers.delete(connectionHeader);
  if (connection !== null) headers.set(connectionHeader, connection);
  return stub.fetch(
    new Request(url, {
      method: request.method,
      headers,
      body: request.body,
      redirect: "manual",
      signal: request.signal,
    }),
  );
}

async function exited(request: Request): Promise<Response> {
  const outcome: Outcome = await request.json();
  const container = request.headers.get(engineHeader.container) ?? "";
  endLife(container, request.headers.get(engineHeader.incarnation) ?? "", outcome);
  return new Response(null, { status: 204 });
}

/** Puts a container's sandbox to sleep. A class without a sleep of its own has nothing that a snapshot would go to. */
async function sleep(request: Request, ctx: ExportsContext): Promise<Response> {
  const { className }: { className: string } = await request.json();
  const id = request.headers.get(engineHeader.container) ?? "";
  const namespace: unknown = Reflect.get(ctx.exports, className, ctx.exports);
  if (!isSandboxNamespace(namespace)) return new Response("no such class", { status: 404 });
  try {
    await namespace.get(namespace.idFromString(id)).sleep();
  } catch (error) {
    // The runtime's own words for a stub whose class has no such method.
    const absent = error instanceof TypeError && /does not implement the method "sleep"/.test(error.message);
    if (!absent) throw error;
    return new Response("the class has no sleep", { status: sleepStatus.unsupported });
  }
  return new Response(null, { status: sleepStatus.done });
}

function isSandboxNamespace(
  value: unknown,
): value is { idFromString(id: string): unknown; get(id: unknown): { sleep(): Promise<void> } } {
  return (
    (typeof value === "object" || typeof value === "function") && value !== null && "idFromString" in value
  );
}

function isFetcher(value: unknown): value is { fetch(request: Request): Promise<Response> } {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return "fetch" in value && typeof value.fetch === "function";
}

/** In time that depends on the lengths alone. */
function sameSecret(given: string, secret: string): boolean {
  let difference = given.length ^ secret.length;
  for (let index = 0; index < secret.length; index++) {
    difference |= (given.charCodeAt(index) || 0) ^ secret.charCodeAt(index);
  }
  return difference === 0;
}

function notFound(): Promise<Response> {
  return Promise.resolve(new Response("Not found", { status: 404 }));
}
