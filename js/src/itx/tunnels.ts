import { RpcTarget } from "cloudflare:workers";

type Call = (method: string, values: unknown[]) => Promise<unknown>;

/** The SDK's `sandbox.tunnels`. */
export class Tunnels extends RpcTarget {
  readonly #call: Call;

  constructor(call: Call) {
    super();
    this.#call = call;
  }

  get(...values: unknown[]): Promise<unknown> {
    return this.#call("get", values);
  }

  list(): Promise<unknown> {
    return this.#call("list", []);
  }

  destroy(...values: unknown[]): Promise<unknown> {
    return this.#call("destroy", values);
  }
}
