import { DurableObject } from "cloudflare:workers";
import { loadCore } from "#core";
import type { EgressDecision, EgressPolicyDocument, EgressRequest } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import { streamStub } from "../stream/stub.ts";
import { Audit } from "./audit.ts";
import type { Connection } from "./connections.ts";
import { type DoorContext, passDoor, testDoor } from "./door.ts";
import { type GatewaySettings, ProjectSettings } from "./settings.ts";

/** The stream of what the door decided. */
const AUDIT_PATH = "/egress";

/** One project: its door, with the policy, the connections and the record of decisions. */
export class ProjectDurableObject extends DurableObject<WorkerEnv> {
  readonly #settings: ProjectSettings;
  #door: DoorContext | null = null;

  constructor(ctx: DurableObjectState, env: WorkerEnv) {
    super(ctx, env);
    this.#settings = new ProjectSettings(ctx.storage);
  }

  /** A request that wants out. Its answer is the target's, or why there is none. */
  override async fetch(request: Request): Promise<Response> {
    return passDoor(await this.#context(), request);
  }

  async testEgress(request: EgressRequest): Promise<EgressDecision> {
    return testDoor(await this.#context(), request);
  }

  getPolicy(): Promise<EgressPolicyDocument> {
    return this.#settings.policy();
  }

  async setPolicy(policy: EgressPolicyDocument): Promise<EgressPolicyDocument> {
    return this.#settings.setPolicy(await loadCore(), policy);
  }

  getGateway(): Promise<GatewaySettings> {
    return this.#settings.gateway();
  }

  setGateway(settings: unknown): Promise<GatewaySettings> {
    return this.#settings.setGateway(settings);
  }

  /** In the order of kind and name. */
  listConnections(): Promise<Connection[]> {
    return this.#settings.connections();
  }

  async setConnection(connection: unknown): Promise<void> {
    await this.#settings.setConnection(await loadCore(), connection);
  }

  async deleteConnection(connection: unknown): Promise<void> {
    await this.#settings.deleteConnection(connection);
  }

  secretPaths(): Promise<string[]> {
    return this.#settings.secretPaths();
  }

  async indexSecret(path: string): Promise<void> {
    await this.#settings.indexSecret((await loadCore()).assertSecretPath(path));
  }

  async forgetSecret(path: string): Promise<void> {
    await this.#settings.forgetSecret(path);
  }

  async #context(): Promise<DoorContext> {
    if (this.#door !== null) return this.#door;
    const core = await loadCore();
    const { env } = this;
    const { projectId } = core.parseDurableObjectName(this.ctx.id.name ?? "");
    const audit = new Audit((events) => streamStub(env, core, projectId, AUDIT_PATH).append(events));
    this.#door ??= {
      env,
      core,
      projectId,
      settings: this.#settings,
      audit,
      defer: (work) => this.ctx.waitUntil(work),
    };
    return this.#door;
  }
}
