import { RpcTarget } from "cloudflare:workers";
import type { ProjectionState } from "../core/types.ts";
import type { SandboxDescription } from "../worker/sandbox/object.ts";
import { lifecycleMethods, sdkMethods } from "../worker/sandbox/surface.ts";
import { objectStream } from "../worker/stream/ndjson.ts";
import type { EventPage } from "../worker/stream/types.ts";
import { onWire } from "../worker/wire.ts";
import { defined, optionalNumber, optionsArgument, stringArgument } from "./arguments.ts";
import { createInput } from "./create-input.ts";
import { invoke } from "./invoke.ts";
import { liveState } from "./live-state.ts";
import { Processor } from "./processor.ts";
import type { SandboxTarget } from "./sandbox-target.ts";
import { SessionHandle } from "./session-handle.ts";
import { Tunnels } from "./tunnels.ts";

/** The SDK's methods that give a session, and how a session's handle is made from what they answer. */
const SESSION_METHODS: readonly string[] = ["createSession", "getSession"];

/**
 * One sandbox by its path. Beside what is written out here it has the lifecycle's verbs and the SDK's public methods, which are
 * put on the prototype below from the same lists that the object guards them by.
 */
export class SandboxHandle extends RpcTarget {
  readonly #target: SandboxTarget;

  constructor(target: SandboxTarget) {
    super();
    this.#target = target;
  }

  static {
    for (const name of [...lifecycleMethods, ...sdkMethods]) {
      if (Object.hasOwn(SandboxHandle.prototype, name)) continue;
      Object.defineProperty(SandboxHandle.prototype, name, {
        value(this: SandboxHandle, ...values: unknown[]) {
          return this.#invoke(name, values);
        },
        writable: true,
        configurable: true,
      });
    }
  }

  /** Creates the sandbox and gives this handle. An existing or destroyed name is refused. */
  create(input?: unknown): Promise<SandboxHandle> {
    return onWire(async () => {
      const { claim, allowRawSecrets } = createInput(this.#target.context.core, this.#target.path, input);
      await this.#target.create(claim, allowRawSecrets);
      return this;
    });
  }

  /** What the sandbox's events add up to. */
  get processor(): Processor {
    return new Processor(this.#target);
  }

  /** The SDK's tunnels. */
  get tunnels(): Tunnels {
    return new Tunnels((method, values) => this.#invoke("callTunnels", [method, values]));
  }

  /** The state as it is now, then every change. */
  liveState(): Promise<ReadableStream<ProjectionState | Uint8Array>> {
    return onWire(async () => {
      const object = await this.#target.object();
      const start = await object.projectionSnapshot();
      const { core, objectStreams } = this.#target.context;
      const lines = liveState(core, start, () => this.#target.stream());
      return objectStreams ? objectStream<ProjectionState>(lines) : lines;
    });
  }

  /** The sandbox's own events after an offset. */
  events(options?: { after?: number; limit?: number }): Promise<EventPage> {
    return onWire(() => {
      const given = optionsArgument("options", options, ["after", "limit"]);
      const after = optionalNumber("after", given.after);
      return this.#target.stream().read(defined({ after, limit: optionalNumber("limit", given.limit) }));
    });
  }

  /** What the object knows of itself and may be told. */
  __describe(): Promise<SandboxDescription> {
    return onWire(async () => (await this.#target.object()).__describe());
  }

  #invoke(method: string, values: readonly unknown[]): Promise<unknown> {
    const answer = invoke(this.#target, method, values);
    return SESSION_METHODS.includes(method) ? answer.then((session) => this.#session(session)) : answer;
  }

  #session(answer: unknown): SessionHandle {
    const id = typeof answer === "object" && answer !== null && "id" in answer ? answer.id : undefined;
    return new SessionHandle(this.#target, stringArgument("session id", id));
  }
}
