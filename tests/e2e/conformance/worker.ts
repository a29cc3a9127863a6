/** An application over the stock SDK whose routes are the conformance cases. */
import type { OutboundHandler } from "@cloudflare/containers";
import * as sdk from "@cloudflare/sandbox";
import { engineEntry } from "../../../js/src/engine/entry.ts";
import { Sandbox as EngineSandbox } from "../../../js/src/engine/sandbox.ts";
import type { Case, ConformanceEnv, Inside, World } from "./case.ts";
import { cases } from "./cases/index.ts";

export { ContainerProxy } from "@cloudflare/sandbox";

/** The package's class and one method more, by which a case reaches the object from inside. */
export class Sandbox extends EngineSandbox<ConformanceEnv> {
  async conform(method: string, title: string): Promise<string | null> {
    const inside: Inside = { self: this, ctx: this.ctx };
    return await verdict(() => caseOf(method, title).run(worldOf(this.env), inside));
  }
}

/** What a case sets for requests from inside. */
const answer: OutboundHandler<ConformanceEnv, { word?: string } | undefined> = (request, _env, { params }) =>
  new Response(`${params?.word ?? "answered"} ${request.url}`);

// A `static outboundHandlers` field would shadow the library's setter.
Sandbox.outboundHandlers = { answer };

function caseOf(method: string, title: string): Case {
  const found = cases[method]?.[title];
  if (found === undefined) throw new RangeError(`there is no case ${method}: ${title}`);
  return found;
}

function worldOf(env: ConformanceEnv): World {
  const namespace = env.Sandbox;
  return {
    transport: env.SANDBOX_TRANSPORT,
    sandbox: sdk.getSandbox(namespace, "shared"),
    another: (name, options) => sdk.getSandbox(namespace, name, options),
    sdk,
    env,
  };
}

async function verdict(run: () => Promise<void>): Promise<string | null> {
  try {
    await run();
    return null;
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** The names on the SDK's prototypes, its own helpers among them: JavaScript does not know which are private. */
function prototypeNames(): string[] {
  const names = new Set<string>();
  for (
    let level: object | null = sdk.Sandbox.prototype;
    level !== null && level.constructor.name !== "DurableObject" && level !== Object.prototype;
    level = Object.getPrototypeOf(level)
  ) {
    for (const name of Object.getOwnPropertyNames(level)) if (name !== "constructor") names.add(name);
  }
  return [...names].sort();
}

async function sessionNames({ sandbox }: World): Promise<string[]> {
  const session = await sandbox.createSession({ id: "names" });
  return Object.keys(session).sort();
}

/** The binding is typed as the SDK wants it, which knows nothing of the one method more. */
function conforming(stub: object): Pick<Sandbox, "conform"> {
  if (!conforms(stub)) throw new TypeError("the object has no method conform");
  return stub;
}

const conforms = (stub: object): stub is Pick<Sandbox, "conform"> =>
  typeof Reflect.get(stub, "conform") === "function";

export default {
  async fetch(request, env, ctx) {
    const engine = engineEntry(request, env, ctx);
    if (engine !== null) return engine;
    const preview = await sdk.proxyToSandbox(request, env);
    if (preview !== null) return preview;
    const { pathname, searchParams } = new URL(request.url);
    const world = worldOf(env);
    if (pathname === "/names") {
      return Response.json({ Sandbox: prototypeNames(), ExecutionSession: await sessionNames(world) });
    }
    const method = searchParams.get("method") ?? "";
    const title = searchParams.get("title") ?? "";
    const found = caseOf(method, title);
    const failure =
      found.inside === null
        ? await verdict(() => found.run(world, null))
        : await conforming(env.Sandbox.getByName(found.inside)).conform(method, title);
    return Response.json({ failure });
  },
} satisfies ExportedHandler<ConformanceEnv>;
