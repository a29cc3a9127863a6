/** The bindings and variables of the Worker; what is optional decides which features answer. */

import type { ProjectDurableObject } from "./project/project-durable-object.ts";
import type { SecretDurableObject } from "./secret/secret-durable-object.ts";
import type { CatalogueDurableObject } from "./stream/catalogue-durable-object.ts";
import type { StreamDurableObject } from "./stream/stream-durable-object.ts";

/** What one request to AI Gateway says, in the shape of the Workers AI binding's `gateway(id).run`. */
export interface GatewayRequest {
  provider: string;
  endpoint: string;
  headers: Record<string, string>;
  query: unknown;
}

export interface AiGateway {
  run(request: GatewayRequest, options?: { signal?: AbortSignal }): Promise<Response>;
}

export interface AiBinding {
  gateway(id: string): AiGateway;
}

export interface WorkerEnv {
  STREAM: DurableObjectNamespace<StreamDurableObject>;
  CATALOGUE: DurableObjectNamespace<CatalogueDurableObject>;
  PROJECT: DurableObjectNamespace<ProjectDurableObject>;
  SECRET: DurableObjectNamespace<SecretDurableObject>;
  BACKUP_BUCKET?: R2Bucket;
  /** Workers AI, whose gateway carries OpenAI requests. */
  AI?: AiBinding;
  /** A service that plays the gateway where there is no `AI` binding (embedded engine, tests). */
  AI_GATEWAY?: Fetcher;
  AI_GATEWAY_ID?: string;
  AI_GATEWAY_CACHE_TTL?: string;
  /** `[{ "id", "secret" }]`: the first signs, all verify. */
  TOKEN_KEYS?: string;
  /** `[{ "id", "key" }]`, keys in base64: the first seals, all open. */
  SECRETS_KEYS?: string;
  /** One key in base64, where there was never a rotation. */
  SECRETS_KEY?: string;
  OPENAI_API_KEY?: string;
  /** `{ "<path>": { "material", "origins" } }` */
  PLATFORM_SECRETS?: string;
  /** The engine's host and the secret of this boot; absent on Cloudflare. */
  ENGINE?: Fetcher;
  ENGINE_SECRET?: string;
  ENGINE_MODE?: string;
}
