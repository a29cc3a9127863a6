/** The way from a path to the object that is the sandbox: claim first, then the class of its instance type. */
import { sandboxNamespace } from "../worker/sandbox/namespaces.ts";
import type { CreateArguments, SandboxObject } from "../worker/sandbox/object.ts";
import type { ClaimInput } from "../worker/stream/catalogue-durable-object.ts";
import { catalogueStub, streamStub } from "../worker/stream/stub.ts";
import type { StoredEvent } from "../worker/stream/types.ts";
import type { ItxContext } from "./context.ts";

export class SandboxTarget {
  readonly context: ItxContext;
  readonly path: string;
  /** A claim never changes, so one that was found holds for as long as this address is used. */
  #claim: StoredEvent | null = null;

  constructor(context: ItxContext, path: string) {
    this.context = context;
    this.path = path;
  }

  /** Claims the name, or meets the claim that is there, and has the object made or its making finished. */
  async create(input: ClaimInput, allowRawSecrets: boolean): Promise<void> {
    const { env, core, projectId } = this.context;
    const { path } = this;
    core.assertContainers(env.ENGINE_MODE ?? "");
    const event = await this.#claimed(input);
    const request: CreateArguments = {
      projectId,
      path,
      input: { ...input, ...(allowRawSecrets ? { allowRawSecrets } : {}) },
      claim: event,
    };
    await this.#stub(event).create(request);
    this.#claim = event;
  }

  /** @throws SandboxError `sandbox_not_found` for a path that was never claimed; nothing is written then */
  async object(): Promise<SandboxObject> {
    return this.#stub(await this.#found());
  }

  /**
   * What a refusal of the object means to a caller. Whoever was led to it has a claim, so that an object which knows of no sandbox
   * is one whose making was cut off.
   * @throws SandboxError `creation_unfinished` then, and the refusal itself otherwise
   */
  explain(refusal: unknown): never {
    const unborn = refusal instanceof Error && "code" in refusal && refusal.code === "sandbox_not_found";
    if (unborn && this.#claim !== null) {
      const { path } = this;
      this.context.core.resolveClaim({
        path,
        claim: this.#claim,
        record: null,
        inFlight: false,
        input: null,
      });
    }
    throw refusal;
  }

  stream() {
    const { env, core, projectId } = this.context;
    return streamStub(env, core, projectId, this.path);
  }

  /** Nearly every claim is the first, and its object makes its file meanwhile; one that is nobody's keeps nothing. */
  async #claimed(input: ClaimInput): Promise<StoredEvent> {
    const { env, core, projectId } = this.context;
    const { path } = this;
    const asked = core.routeClaim({ payload: { path, ...input } }, path).binding;
    const object = this.#named(asked);
    const prepared = object.prepare().catch(() => undefined);
    let claimed: string | null = null;
    try {
      const { event } = await catalogueStub(env, core, projectId).claim({ path, input });
      claimed = core.routeClaim(event, path).binding;
      return event;
    } finally {
      if (claimed !== asked)
        await prepared.then(() => object.assertCreated({ projectId, path })).catch(() => undefined);
    }
  }

  async #found(): Promise<StoredEvent | null> {
    if (this.#claim !== null) return this.#claim;
    const { env, core, projectId } = this.context;
    const known = await catalogueStub(env, core, projectId).lookup(this.path);
    if (known === null) return null;
    this.#claim = known.claim;
    return this.#claim;
  }

  #stub(claim: StoredEvent | null): SandboxObject {
    const { env, core } = this.context;
    const { binding } = core.routeClaim(claim, this.path);
    core.assertContainers(env.ENGINE_MODE ?? "");
    return this.#named(binding);
  }

  #named(binding: string): SandboxObject {
    const { env, core, projectId } = this.context;
    return sandboxNamespace(env, binding).getByName(core.durableObjectName({ projectId, path: this.path }));
  }
}
