/** The door: every request of a project that wants out is decided by the core here, recorded, and sent the way it was decided. */
import { SandboxError } from "../../core/error.ts";
import type { Core, EgressDecision, EgressRequest, GatewayOptions } from "../../core/types.ts";
import { connectionHeader } from "../../engine/protocol.ts";
import type { WorkerEnv } from "../env.ts";
import { count } from "../metrics.ts";
import type { Audit, AuditEntry } from "./audit.ts";
import { bodyLimit, readBody, templateHeader } from "./body.ts";
import {
  callerHeader,
  errorResponse,
  isUpgrade,
  refusalResponse,
  send,
  webSocketResponse,
} from "./forward.ts";
import { cacheKey, gatewayRequest, requireGateway } from "./gateway.ts";
import type { ProjectSettings } from "./settings.ts";
import { secretStub } from "./stubs.ts";

export interface DoorContext {
  readonly env: WorkerEnv;
  readonly core: Core;
  readonly projectId: string;
  readonly settings: ProjectSettings;
  readonly audit: Audit;
  /** Keeps the object until work that nobody waits for is done. */
  readonly defer: (work: Promise<unknown>) => void;
}

/** A request that was decided, with the body as far as the decision had to read it. */
interface Decided {
  request: Request;
  body: Uint8Array | null;
  decision: EgressDecision;
}

/** Decides and sends one request. Refusals are answers too: a person running curl reads why. */
export async function passDoor(door: DoorContext, request: Request): Promise<Response> {
  try {
    const decided = await decide(door, request);
    count("egress_decisions");
    switch (decided.decision.kind) {
      case "deny":
        return deny(door, decided);
      case "secret":
        return await sendWithSecret(door, decided);
      case "aiGateway":
        return await sendThroughGateway(door, decided);
      case "forward":
        return await forward(door, decided);
    }
  } catch (error) {
    return errorResponse(door.core, error);
  }
}

/** What would be decided; nothing is sent or recorded. */
export async function testDoor(door: DoorContext, request: EgressRequest): Promise<EgressDecision> {
  return door.settings.decide(door.core, { ...request, gateway: await gatewayOptions(door, null) });
}

async function decide(door: DoorContext, request: Request): Promise<Decided> {
  const gateway = await gatewayOptions(door, request.headers.get(callerHeader));
  const limit = bodyLimit(request);
  const body = limit > 0 && request.body !== null ? await readBody(request.body, limit) : null;
  const connection = request.headers.get(connectionHeader);
  const decision = await door.settings.decide(door.core, {
    method: request.method,
    url: request.url,
    headers: [...request.headers].filter(([name]) => name !== callerHeader && name !== connectionHeader),
    ...(body === null ? {} : { body }),
    webSocket: isUpgrade(request),
    ...(connection === null ? {} : { connection: JSON.parse(connection) }),
    gateway,
  });
  return { request, body, decision };
}

async function gatewayOptions(door: DoorContext, caller: string | null): Promise<GatewayOptions | null> {
  const { enabled, cacheTtlSeconds } = await door.settings.gateway();
  if (!enabled) return null;
  return {
    // Without a key the request is refused at the call, and not sent past the gateway.
    apiKey: door.env.OPENAI_API_KEY || "unset",
    cacheTtlSeconds,
    metadata: {
      projectId: door.projectId,
      source: "project-egress",
      ...(caller === null ? {} : { caller }),
    },
  };
}

function deny(door: DoorContext, { request, decision }: Decided): Response {
  count("egress_denied");
  door.defer(door.audit.record(auditEntry(request, decision)));
  const { code = "egress_denied", status, rule, detail = "" } = decision;
  return refusalResponse(door.core, { code, rule, detail, ...(status === undefined ? {} : { status }) });
}

async function forward(door: DoorContext, { request, body, decision }: Decided): Promise<Response> {
  door.defer(door.audit.record(auditEntry(request, decision)));
  const { url, method } = request;
  const headers = forwardedHeaders(request, decision);
  const response = await send(door.env, door.core, { url, method, headers, body: body ?? request.body });
  return webSocketResponse(door.core, request, response);
}

async function sendWithSecret(door: DoorContext, { request, body, decision }: Decided): Promise<Response> {
  const { env, core, projectId, audit, defer } = door;
  const [reference] = decision.references;
  if (reference === undefined) throw new TypeError("a decision for a secret names none");
  const path = reference.kind === "platform" ? `/platform/${reference.path}` : reference.path;
  const stub = secretStub(env, core, projectId, path);
  const entry = {
    ...auditEntry(request, decision),
    ...(reference.kind === "secret" ? { secretPath: reference.path } : {}),
  };
  try {
    await stub.authorize({ url: request.url, references: decision.references });
  } catch (error) {
    count("egress_denied");
    defer(audit.record({ ...entry, decision: "deny" }));
    throw error;
  }
  await audit.recordNow(entry);
  count("secret_uses");
  const headers = forwardedHeaders(request, decision);
  const template = request.headers.get(templateHeader);
  if (template !== null) headers.set(templateHeader, template);
  return stub.fetch(
    new Request(request.url, {
      method: request.method,
      headers,
      body: body ?? request.body,
      redirect: "manual",
    }),
  );
}

async function sendThroughGateway(door: DoorContext, { request, decision }: Decided): Promise<Response> {
  door.defer(door.audit.record(auditEntry(request, decision)));
  const gateway = requireGateway(door.env);
  const { endpoint, headers = [], body, cacheKeyInput } = decision;
  if (endpoint === undefined || body === undefined)
    throw new TypeError("a gateway decision has no endpoint or body");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const withKey =
    cacheKeyInput === undefined
      ? headers
      : [...headers, ["cf-aig-cache-key", await cacheKey(cacheKeyInput)] as const];
  count("gateway_requests");
  try {
    return await gateway.run(gatewayRequest(endpoint, withKey, text));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new SandboxError({
      code: "upstream_unreachable",
      message: `AI Gateway could not be reached: ${reason}`,
      details: { host: "api.openai.com" },
      status: 502,
      retryable: true,
    });
  }
}

function forwardedHeaders(request: Request, decision: EgressDecision): Headers {
  const headers = new Headers(request.headers);
  for (const name of [...decision.dropHeaders, callerHeader, connectionHeader]) headers.delete(name);
  // The runtime makes a handshake of its own, and needs to be asked for one.
  if (isUpgrade(request)) headers.set("upgrade", "websocket");
  return headers;
}

/** What happened, without query, body or anything that came from a secret. */
function auditEntry(request: Request, decision: EgressDecision): AuditEntry {
  const url = new URL(request.url);
  const secure = url.protocol === "https:" || url.protocol === "wss:";
  return {
    method: request.method,
    scheme: url.protocol.slice(0, -1),
    host: url.hostname,
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    path: url.pathname,
    decision: decision.kind,
    ...(decision.rule === null ? {} : { ruleId: decision.rule }),
  };
}
