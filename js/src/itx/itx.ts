import { RpcTarget } from "cloudflare:workers";
import { Connections } from "./connections.ts";
import type { ItxContext } from "./context.ts";
import { Egress } from "./egress.ts";
import { Sandboxes } from "./sandboxes.ts";
import { Secrets } from "./secrets.ts";
import { Streams } from "./streams.ts";

/** The API of one project. It holds nothing but addresses, so that making one costs and touches nothing. */
export class Itx extends RpcTarget {
  readonly #context: ItxContext;

  constructor(context: ItxContext) {
    super();
    this.#context = context;
  }

  get sandboxes(): Sandboxes {
    return new Sandboxes(this.#context);
  }

  get secrets(): Secrets {
    return new Secrets(this.#context);
  }

  get egress(): Egress {
    return new Egress(this.#context);
  }

  get streams(): Streams {
    return new Streams(this.#context);
  }

  get connections(): Connections {
    return new Connections(this.#context);
  }
}
