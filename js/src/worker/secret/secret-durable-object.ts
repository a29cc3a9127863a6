import { DurableObject } from "cloudflare:workers";
import { loadCore } from "#core";
import type { Core } from "../../core/types.ts";
import type { WorkerEnv } from "../env.ts";
import { shellError } from "../errors.ts";
import { errorResponse } from "../project/forward.ts";
import { projectStub } from "../project/stubs.ts";
import { streamStub } from "../stream/stub.ts";
import type { EventInput } from "../stream/types.ts";
import { PLATFORM_PREFIX, platformSecret } from "./platform.ts";
import type { SecretDescription, SecretMaterial, SecretReference } from "./types.ts";
import { checkUse, sendSubstituted, templateBody, type UsableSecret } from "./use.ts";
import { Vault } from "./vault.ts";

interface SecretContext {
  core: Core;
  projectId: string;
  path: string;
  vault: Vault;
}

/**
 * One secret of one project. Material comes in by `set` and `rotate` and leaves inside requests to its pinned origins; no call
 * gives it back.
 */
export class SecretDurableObject extends DurableObject<WorkerEnv> {
  #loaded: SecretContext | null = null;

  async set(input: { material: unknown; origins: unknown }): Promise<SecretDescription> {
    const { core } = await this.#context();
    const material = checkMaterial(core, input.material);
    return this.#store(material, core.checkSecretOrigins(input.origins));
  }

  /** New material, same origins. */
  async rotate(input: { material: unknown }): Promise<SecretDescription> {
    const { core } = await this.#context();
    return this.#store(checkMaterial(core, input.material), null);
  }

  async describe(): Promise<SecretDescription> {
    const { vault } = await this.#context();
    const description = await vault.describe();
    if (description === null) throw vault.notFound();
    return description;
  }

  async describeIfPresent(): Promise<SecretDescription | null> {
    return (await this.#context()).vault.describe();
  }

  /** Deleting what is not there is no error. */
  async delete(): Promise<void> {
    const { core, projectId, path, vault } = await this.#context();
    if (await vault.delete(new Date().toISOString())) await this.#record("deleted", {});
    await projectStub(this.env, core, projectId).forgetSecret(path);
  }

  /**
   * Whether a request could leave with this secret; what `fetch` would refuse is refused here, before anything is recorded.
   * @throws SandboxError
   */
  async authorize(use: { url: string; references: readonly SecretReference[] }): Promise<void> {
    const { core } = await this.#context();
    checkUse(core, await this.#usable(), use.url, await this.#own(use.references));
  }

  /** Sends a request with the material in place of its placeholders. */
  override async fetch(request: Request): Promise<Response> {
    try {
      const { core } = await this.#context();
      const secret = await this.#usable();
      const body = await templateBody(request);
      const { references } = core.scanPlaceholders({
        url: request.url,
        headers: [...request.headers],
        ...(body === null ? {} : { body }),
      });
      const own = await this.#own(references);
      checkUse(core, secret, request.url, own);
      await this.#record("used", { host: new URL(request.url).host });
      return await sendSubstituted({ env: this.env, core, secret, request, references: own, body });
    } catch (error) {
      return errorResponse(await loadCore(), error);
    }
  }

  async #store(material: SecretMaterial, origins: string[] | null): Promise<SecretDescription> {
    const { core, projectId, path, vault } = await this.#context();
    if (path.startsWith(PLATFORM_PREFIX)) throw vault.notFound();
    // Indexed first: a path in the index without a secret is skipped by `list`, a secret outside it would be lost to it.
    await projectStub(this.env, core, projectId).indexSecret(path);
    const description = await vault.store(material, origins, new Date().toISOString());
    await this.#record("updated", { version: description.version, origins: description.origins });
    return description;
  }

  async #usable(): Promise<UsableSecret> {
    const { core, path, vault } = await this.#context();
    if (!path.startsWith(PLATFORM_PREFIX)) return vault.open();
    return platformSecret(core, this.env.PLATFORM_SECRETS, path.slice(PLATFORM_PREFIX.length));
  }

  /** All placeholders of one request name one secret, and it is this one. */
  async #own(references: readonly SecretReference[]): Promise<readonly SecretReference[]> {
    const { path } = await this.#context();
    const foreign = references.find(
      (reference) =>
        (reference.kind === "platform" ? `${PLATFORM_PREFIX}${reference.path}` : reference.path) !== path,
    );
    if (foreign !== undefined) {
      throw shellError("invalid_argument", `the request names ${foreign.path} and was sent to ${path}`, {
        path,
      });
    }
    return references;
  }

  async #record(name: "updated" | "deleted" | "used", payload: Record<string, unknown>): Promise<void> {
    const { core, projectId, path } = await this.#context();
    const event: EventInput = { type: `events.iterate.com/secret/${name}`, payload };
    await streamStub(this.env, core, projectId, path).append([event]);
  }

  async #context(): Promise<SecretContext> {
    if (this.#loaded !== null) return this.#loaded;
    const core = await loadCore();
    const identity = core.parseDurableObjectName(this.ctx.id.name ?? "");
    this.#loaded ??= { core, ...identity, vault: new Vault(this.ctx.storage, this.env, identity) };
    return this.#loaded;
  }
}

function checkMaterial(core: Core, material: unknown): SecretMaterial {
  core.checkSecretMaterial(material);
  return isMaterial(material) ? material : "";
}

function isMaterial(value: unknown): value is SecretMaterial {
  return typeof value === "string" || (typeof value === "object" && value !== null);
}
