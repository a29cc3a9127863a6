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

/** What callers see of an object: its methods as they are, which the types of RPC stubs lose for values of unknown shape. */
export interface ObjectNamespace<T> {
  getByName(name: string): T;
}

export type StreamObject = Pick<StreamDurableObject, "append" | "read" | "tail" | "waitFor">;
export type CatalogueObject = StreamObject &
  Pick<CatalogueDurableObject, "claim" | "lookup" | "list" | "completion">;
export type ProjectObject = Omit<ProjectDurableObject, keyof DurableObject | "ctx" | "env"> &
  Pick<Fetcher, "fetch">;
export type SecretObject = Omit<SecretDurableObject, keyof DurableObject | "ctx" | "env"> &
  Pick<Fetcher, "fetch">;

export interface WorkerEnv {
  STREAM: ObjectNamespace<StreamObject>;
  CATALOGUE: ObjectNamespace<CatalogueObject>;
  PROJECT: ObjectNamespace<ProjectObject>;
  SECRET: ObjectNamespace<SecretObject>;
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
