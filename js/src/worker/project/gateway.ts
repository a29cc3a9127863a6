/** OpenAI requests through AI Gateway. */
import type { AiGateway, GatewayRequest, WorkerEnv } from "../env.ts";
import { shellError } from "../errors.ts";

const DEFAULT_GATEWAY = "default";

/**
 * The gateway and the key to use with it, both read at the moment of the call.
 * @throws SandboxError `gateway_not_configured`, naming what is missing
 */
export function requireGateway(env: WorkerEnv): AiGateway {
  const gateway = boundGateway(env);
  const missing = [
    ...(gateway === null ? ["the AI binding"] : []),
    ...(env.OPENAI_API_KEY === undefined || env.OPENAI_API_KEY === "" ? ["the variable OPENAI_API_KEY"] : []),
  ];
  if (gateway === null || missing.length > 0) {
    throw shellError(
      "gateway_not_configured",
      `requests to api.openai.com go through AI Gateway, and ${missing.join(" and ")} is missing; configure it, or turn the gateway off for this project`,
      { missing: missing.join(", ") },
    );
  }
  return gateway;
}

function boundGateway(env: WorkerEnv): AiGateway | null {
  const id = env.AI_GATEWAY_ID ?? DEFAULT_GATEWAY;
  if (env.AI !== undefined) return env.AI.gateway(id);
  if (env.AI_GATEWAY !== undefined) return serviceGateway(env.AI_GATEWAY, id);
  return null;
}

/** The same call as an HTTP request, in the body that AI Gateway's universal endpoint takes. */
function serviceGateway(service: Fetcher, id: string): AiGateway {
  return {
    run: (request) =>
      service.fetch(`http://ai-gateway/${encodeURIComponent(id)}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify([request]),
      }),
  };
}

/** The body as the value that `run` takes. Numbers that a double would round stay as they were written. */
export function gatewayQuery(body: string): unknown {
  return JSON.parse(body, (_key, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    if (typeof value !== "number" || source === undefined || String(value) === source) return value;
    return rawJson(source);
  });
}

/** `JSON.rawJSON` keeps a number's spelling; its type is newer than the compiler's library. */
function rawJson(source: string): unknown {
  const make: unknown = Reflect.get(JSON, "rawJSON");
  return typeof make === "function" ? Reflect.apply(make, JSON, [source]) : Number(source);
}

export function gatewayRequest(
  endpoint: string,
  headers: readonly (readonly [string, string])[],
  body: string,
): GatewayRequest {
  return { provider: "openai", endpoint, headers: Object.fromEntries(headers), query: gatewayQuery(body) };
}

/** The key under which equal requests share one cached answer. */
export async function cacheKey(input: Uint8Array | string): Promise<string> {
  const bytes = typeof input === "string" ? new TextEncoder().encode(input) : input;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
