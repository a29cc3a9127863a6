/** What a project has decided about its door, in the object's storage; a project that never set anything has nothing there. */
import type {
  Core,
  EgressDecision,
  EgressPolicy,
  EgressPolicyDocument,
  EgressRequest,
} from "../../core/types.ts";
import { invalidArgument, shellError } from "../errors.ts";
import { type Connection, checkConnection, checkConnectionKey } from "./connections.ts";

export interface GatewaySettings {
  /** Whether JSON requests to api.openai.com go through AI Gateway. */
  enabled: boolean;
  /** How long the gateway may answer from its cache; null keeps it out of the way. */
  cacheTtlSeconds: number | null;
}

const DEFAULT_POLICY: EgressPolicyDocument = { default: "allow", rules: [] };
const MAX_CACHE_TTL_SECONDS = 30 * 24 * 60 * 60;
const MAX_SECRETS = 1_000;

export class ProjectSettings {
  readonly #storage: DurableObjectStorage;
  #compiled: EgressPolicy | null = null;
  /** Asked for by every request that wants out; only this object changes it. */
  #gateway: GatewaySettings | null = null;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  async policy(): Promise<EgressPolicyDocument> {
    return (await this.#storage.get<EgressPolicyDocument>("policy")) ?? DEFAULT_POLICY;
  }

  /** Decides by the policy in force. It is compiled once, and no call can free it between finding and asking it. */
  async decide(core: Core, request: EgressRequest): Promise<EgressDecision> {
    const document = this.#compiled === null ? await this.policy() : null;
    // Another call may have compiled while this one read.
    if (document !== null) this.#compiled ??= core.compileEgressPolicy(document);
    if (this.#compiled === null) throw new TypeError("the policy in force is not compiled");
    return this.#compiled.decide(request);
  }

  /** @throws SandboxError for a policy that does not compile; the one in force stays */
  async setPolicy(core: Core, document: EgressPolicyDocument): Promise<EgressPolicyDocument> {
    const compiled = core.compileEgressPolicy(document);
    await this.#storage.put("policy", document);
    this.#compiled?.free();
    this.#compiled = compiled;
    return document;
  }

  async gateway(): Promise<GatewaySettings> {
    if (this.#gateway !== null) return this.#gateway;
    const stored = await this.#storage.get<GatewaySettings>("gateway");
    // Another call may have set it while this one read.
    this.#gateway ??= stored ?? { enabled: true, cacheTtlSeconds: null };
    return this.#gateway;
  }

  async setGateway(settings: unknown): Promise<GatewaySettings> {
    const given: Record<string, unknown> =
      typeof settings === "object" && settings !== null ? { ...settings } : {};
    const { enabled, cacheTtlSeconds = null } = given;
    if (typeof enabled !== "boolean") throw invalidArgument("enabled", enabled, "true or false");
    if (cacheTtlSeconds !== null && !isTtl(cacheTtlSeconds)) {
      throw invalidArgument(
        "cacheTtlSeconds",
        cacheTtlSeconds,
        `null, or a whole number of seconds from 60 to ${MAX_CACHE_TTL_SECONDS}`,
      );
    }
    const checked: GatewaySettings = { enabled, cacheTtlSeconds };
    await this.#storage.put("gateway", checked);
    this.#gateway = checked;
    return checked;
  }

  async connections(): Promise<Connection[]> {
    return [...(await this.#storage.list<Connection>({ prefix: "connection:" })).values()];
  }

  async setConnection(core: Core, connection: unknown): Promise<void> {
    const checked = checkConnection(core, connection);
    await this.#storage.put(`connection:${checked.kind}:${checked.name}`, checked);
  }

  async deleteConnection(connection: unknown): Promise<void> {
    const { kind, name } = checkConnectionKey(connection);
    await this.#storage.delete(`connection:${kind}:${name}`);
  }

  /** An index for listing only: a secret's own object says whether it is there. */
  async secretPaths(): Promise<string[]> {
    const keys = (await this.#storage.list({ prefix: "secret:", limit: MAX_SECRETS })).keys();
    return [...keys].map((key) => key.slice("secret:".length));
  }

  async indexSecret(path: string): Promise<void> {
    const known = await this.secretPaths();
    if (!known.includes(path) && known.length >= MAX_SECRETS) {
      throw shellError("invalid_argument", `a project has at most ${MAX_SECRETS} secrets; delete one first`, {
        limit: MAX_SECRETS,
      });
    }
    await this.#storage.put(`secret:${path}`, true);
  }

  async forgetSecret(path: string): Promise<void> {
    await this.#storage.delete(`secret:${path}`);
  }
}

function isTtl(value: unknown): value is number {
  return (
    typeof value === "number" && Number.isInteger(value) && value >= 60 && value <= MAX_CACHE_TTL_SECONDS
  );
}
