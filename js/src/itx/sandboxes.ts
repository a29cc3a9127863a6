import { RpcTarget } from "cloudflare:workers";
import type { Listing, ListOptions } from "../worker/stream/catalogue-durable-object.ts";
import { catalogueStub } from "../worker/stream/stub.ts";
import { onWire } from "../worker/wire.ts";
import { defined, optionalNumber, optionalString, optionsArgument, stringArgument } from "./arguments.ts";
import type { ItxContext } from "./context.ts";
import { SandboxHandle } from "./sandbox-handle.ts";
import { SandboxTarget } from "./sandbox-target.ts";

/** The project's sandboxes. */
export class Sandboxes extends RpcTarget {
  readonly #context: ItxContext;

  constructor(context: ItxContext) {
    super();
    this.#context = context;
  }

  /**
   * A local address: nothing is read, written or started, and the sandbox need not exist.
   * @throws SandboxError `invalid_path`
   */
  get(path: string): SandboxHandle {
    const checked = this.#context.core.assertSandboxPath(stringArgument("path", path));
    return new SandboxHandle(new SandboxTarget(this.#context, checked));
  }

  /** The claimed paths in order, destroyed ones too, a page at a time. */
  list(options?: ListOptions): Promise<Listing> {
    return onWire(() => {
      const given = optionsArgument("options", options, ["limit", "cursor", "instanceType", "status"]);
      const { env, core, projectId } = this.#context;
      return catalogueStub(env, core, projectId).list(
        defined({
          limit: optionalNumber("limit", given.limit),
          cursor: optionalString("cursor", given.cursor),
          instanceType: optionalString("instanceType", given.instanceType),
          status: optionalString("status", given.status),
        }),
      );
    });
  }
}
