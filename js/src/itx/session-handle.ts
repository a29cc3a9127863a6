import { RpcTarget } from "cloudflare:workers";
import { sessionMethods } from "../worker/sandbox/surface.ts";
import { invoke } from "./invoke.ts";
import type { SandboxTarget } from "./sandbox-target.ts";

/** One session of a sandbox: the SDK's ExecutionSession, by its id, so that it outlives restarts of the object. */
export class SessionHandle extends RpcTarget {
  readonly #target: SandboxTarget;
  readonly #id: string;

  constructor(target: SandboxTarget, id: string) {
    super();
    this.#target = target;
    this.#id = id;
  }

  static {
    for (const name of sessionMethods) {
      Object.defineProperty(SessionHandle.prototype, name, {
        value(this: SessionHandle, ...values: unknown[]) {
          return invoke(this.#target, name, values, this.#id);
        },
        writable: true,
        configurable: true,
      });
    }
  }

  get id(): string {
    return this.#id;
  }
}
