import { RpcTarget } from "cloudflare:workers";
import type { Connection } from "../worker/project/connections.ts";
import { projectStub } from "../worker/project/stubs.ts";
import { onWire } from "../worker/wire.ts";
import type { ItxContext } from "./context.ts";

/** What the project is connected to; a GitHub connection makes its sandboxes' git and gh work. */
export class Connections extends RpcTarget {
  readonly #context: ItxContext;

  constructor(context: ItxContext) {
    super();
    this.#context = context;
  }

  list(): Promise<Connection[]> {
    return onWire(() => this.#stub().listConnections());
  }

  /** Adds a connection, or points an existing one of the same kind and name at another secret. */
  set(connection: Connection): Promise<void> {
    return onWire(() => this.#stub().setConnection(connection));
  }

  delete(connection: { kind: string; name: string }): Promise<void> {
    return onWire(() => this.#stub().deleteConnection(connection));
  }

  #stub() {
    const { env, core, projectId } = this.#context;
    return projectStub(env, core, projectId);
  }
}
