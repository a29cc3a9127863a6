/** The Worker under test, with a door for tests: any method of any object, its tables, and an end without warning. */
import { DurableObject } from "cloudflare:workers";
import { newWorkersWebSocketRpcResponse, RpcTarget } from "capnweb";
import type { WorkerEnv } from "../../js/src/worker/env.ts";
import worker from "../../js/src/worker/index.ts";
import { SandboxBasicDurableObject as Basic } from "../../js/src/worker/sandbox/classes.ts";
import { throughTheDoor } from "../../js/src/worker/sandbox/egress-handler.ts";
import { CatalogueDurableObject as Catalogue } from "../../js/src/worker/stream/catalogue-durable-object.ts";
import { StreamDurableObject as Stream } from "../../js/src/worker/stream/stream-durable-object.ts";
import { wireError } from "../../js/src/worker/wire.ts";

export * from "../../js/src/worker/index.ts";

export class StreamDurableObject extends Stream {
  testTables(): string[] {
    return tables(this.ctx);
  }

  testAbort(): void {
    this.ctx.abort("ended by a test");
  }
}

export class CatalogueDurableObject extends Catalogue {
  /** Claims in bulk, through the same append as single ones. */
  async testFill(from: number, to: number): Promise<void> {
    const events = Array.from({ length: to - from }, (_, index) => {
      const path = `/sandboxes/filled-${((from + index) * 2_654_435_761) % 4_294_967_296}-${from + index}`;
      return {
        type: "events.iterate.com/sandbox/create-requested",
        payload: { path, instanceType: index % 3 === 0 ? "lite" : "basic" },
        idempotencyKey: `sandbox-create-requested:${path}`,
      };
    });
    await this.append(events);
  }

  testTables(): string[] {
    return tables(this.ctx);
  }
}

/** The libraries key their handlers by class name, so the tested class has the name of the one under test. */
export class SandboxBasicDurableObject extends Basic {
  static {
    SandboxBasicDurableObject.outbound = throughTheDoor;
  }

  testTables(): string[] {
    return tables(this.ctx);
  }

  async testKeys(): Promise<string[]> {
    const alarm = await this.ctx.storage.getAlarm();
    return [...(await this.ctx.storage.list()).keys(), ...(alarm === null ? [] : ["alarm"])];
  }

  async testFetch(url: string): Promise<number> {
    return (await this.fetch(new Request(url))).status;
  }

  /** Every method of the SDK's classes, and of ours. */
  testMethods(): string[] {
    const names = new Set<string>();
    let prototype: object = Basic.prototype;
    while (prototype !== DurableObject.prototype) {
      for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
        if (typeof value === "function" && name !== "constructor") names.add(name);
      }
      prototype = Object.getPrototypeOf(prototype);
    }
    return [...names];
  }
}

function tables(ctx: DurableObjectState): string[] {
  return [...ctx.storage.sql.exec<{ name: string }>("SELECT name FROM sqlite_master")].map(
    ({ name }) => name,
  );
}

class TestDoor extends RpcTarget {
  readonly #env: Record<string, unknown>;

  constructor(env: Record<string, unknown>) {
    super();
    this.#env = env;
  }

  async call(binding: string, name: string, method: string, values: unknown[]): Promise<unknown> {
    const namespace = this.#env[binding];
    if (!isNamespace(namespace)) throw new TypeError(`there is no binding ${binding}`);
    const call: unknown = Reflect.get(namespace.getByName(name), method);
    if (typeof call !== "function") throw new TypeError(`a stub has no ${method}`);
    return Reflect.apply(call, undefined, values);
  }
}

/** What a sandbox's outbound handler does with an upgrade: hands it to the project's door. */
function socketThroughDoor(request: Request, env: WorkerEnv): Promise<Response> {
  const { searchParams } = new URL(request.url);
  const headers = new Headers(request.headers);
  headers.delete("host");
  const door = env.PROJECT.getByName(`${searchParams.get("project")}.iterate/`);
  return door.fetch(new Request(searchParams.get("url") ?? "", { headers }));
}

function isNamespace(value: unknown): value is { getByName(name: string): object } {
  return typeof value === "object" && value !== null && "getByName" in value;
}

const tested: ExportedHandler<WorkerEnv> = {
  async fetch(request, env, ctx) {
    if (new URL(request.url).pathname === "/test-door") {
      return newWorkersWebSocketRpcResponse(request, new TestDoor({ ...env }), {
        onSendError: (error) => wireError(error),
      });
    }
    if (new URL(request.url).pathname === "/test-socket") return socketThroughDoor(request, env);
    if (worker.fetch === undefined) throw new TypeError("the Worker has no fetch");
    return worker.fetch(request, env, ctx);
  },
};

export default tested;
