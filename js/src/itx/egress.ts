import { RpcTarget } from "cloudflare:workers";
import type { EgressDecision, EgressPolicyDocument } from "../core/types.ts";
import { connectionHeader } from "../engine/protocol.ts";
import { invalidArgument } from "../worker/errors.ts";
import { callerHeader } from "../worker/project/forward.ts";
import type { GatewaySettings } from "../worker/project/settings.ts";
import { projectStub } from "../worker/project/stubs.ts";
import { onWire } from "../worker/wire.ts";
import { optionsArgument, stringArgument } from "./arguments.ts";
import type { ItxContext } from "./context.ts";
import { follow } from "./redirects.ts";

/** What of a request a decision looks at. */
export interface TestedRequest {
  method?: string;
  url: string;
  headers?: [string, string][];
}

/** The project's door, for whoever configures it and for code that wants out through it. */
export class Egress extends RpcTarget {
  readonly #context: ItxContext;

  constructor(context: ItxContext) {
    super();
    this.#context = context;
  }

  getPolicy(): Promise<EgressPolicyDocument> {
    return onWire(() => this.#door().getPolicy());
  }

  /** Replaces the policy. One that does not compile is refused, and the old one stays in force. */
  setPolicy(policy: EgressPolicyDocument): Promise<EgressPolicyDocument> {
    return onWire(() => this.#door().setPolicy(policy));
  }

  /** Whether OpenAI requests go through AI Gateway, and how long it may answer from its cache. */
  getGateway(): Promise<GatewaySettings> {
    return onWire(() => this.#door().getGateway());
  }

  setGateway(settings: { enabled: boolean; cacheTtlSeconds?: number | null }): Promise<GatewaySettings> {
    return onWire(() => this.#door().setGateway(settings));
  }

  /** Which rule would decide a request, and how. Nothing is sent or recorded. */
  test(request: TestedRequest): Promise<EgressDecision> {
    return onWire(() => {
      const given = optionsArgument("request", request, ["method", "url", "headers"]);
      const headers = headerPairs(given.headers);
      return this.#door().testEgress({
        method: given.method === undefined ? "GET" : stringArgument("method", given.method),
        url: stringArgument("url", given.url),
        headers,
        webSocket: headers.some(([name, value]) => /^upgrade$/i.test(name) && /websocket/i.test(value)),
      });
    });
  }

  /** Sends a request through the door. Redirects are followed as the request asks, each one decided anew. */
  fetch(request: Request | string): Promise<Response> {
    return onWire(() => {
      if (typeof request !== "string" && !(request instanceof Request)) {
        throw invalidArgument("request", request, "a Request or a URL");
      }
      const door = this.#door();
      return follow(this.#context, asRequest(request), (hop) => door.fetch(hop));
    });
  }

  #door() {
    const { env, core, projectId } = this.#context;
    return projectStub(env, core, projectId);
  }
}

function asRequest(request: Request | string): Request {
  let made: Request;
  try {
    made = new Request(request);
  } catch {
    throw invalidArgument("request", request, "an absolute URL, such as https://example.com/");
  }
  if (!/^https?:/.test(made.url)) {
    throw invalidArgument(
      "request",
      made.url,
      "an http or https URL; a WebSocket's is one with an Upgrade header",
    );
  }
  // Only the engine and the sandboxes' own handlers may say these.
  made.headers.delete(callerHeader);
  made.headers.delete(connectionHeader);
  return made;
}

function headerPairs(value: unknown): [string, string][] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every(isPair)) {
    throw invalidArgument("headers", value, "an array of [name, value]");
  }
  return value;
}

function isPair(value: unknown): value is [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === "string");
}
