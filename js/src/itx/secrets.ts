import { RpcTarget } from "cloudflare:workers";
import { projectStub, secretStub } from "../worker/project/stubs.ts";
import type { SecretDescription } from "../worker/secret/types.ts";
import { onWire } from "../worker/wire.ts";
import { optionsArgument, stringArgument } from "./arguments.ts";
import type { ItxContext } from "./context.ts";

/** The project's secrets: what is set can be used towards its origins, and never read again. */
export class Secrets extends RpcTarget {
  readonly #context: ItxContext;

  constructor(context: ItxContext) {
    super();
    this.#context = context;
  }

  /** A local address: nothing is read or written. */
  get(path: string): SecretHandle {
    return new SecretHandle(this.#context, this.#context.core.assertSecretPath(stringArgument("path", path)));
  }

  /** Every secret of the project, in the order of paths; never material. */
  list(): Promise<SecretDescription[]> {
    return onWire(async () => {
      const { env, core, projectId } = this.#context;
      const paths = await projectStub(env, core, projectId).secretPaths();
      const descriptions = await Promise.all(
        paths.map((path) => secretStub(env, core, projectId, path).describeIfPresent()),
      );
      return descriptions.filter((description) => description !== null);
    });
  }
}

export class SecretHandle extends RpcTarget {
  readonly #context: ItxContext;
  readonly #path: string;

  constructor(context: ItxContext, path: string) {
    super();
    this.#context = context;
    this.#path = path;
  }

  /** Stores material and the origins it may go to; an existing secret gets a new version of both. */
  set(input: { material: unknown; origins: string[] }): Promise<SecretDescription> {
    return onWire(() => {
      const { material, origins } = optionsArgument("input", input, ["material", "origins"]);
      return this.#stub().set({ material, origins });
    });
  }

  /** New material for the same origins. */
  rotate(input: { material: unknown }): Promise<SecretDescription> {
    return onWire(() => {
      const { material } = optionsArgument("input", input, ["material"]);
      return this.#stub().rotate({ material });
    });
  }

  describe(): Promise<SecretDescription> {
    return onWire(() => this.#stub().describe());
  }

  delete(): Promise<void> {
    return onWire(() => this.#stub().delete());
  }

  #stub() {
    const { env, core, projectId } = this.#context;
    return secretStub(env, core, projectId, this.#path);
  }
}
