/** The Worker in real workerd, with an internet that the test plays and a door to its objects. No sandbox is started. */

import { readFileSync } from "node:fs";
import { newWebSocketRpcSession } from "capnweb";
import { build } from "esbuild";
import { Miniflare, type Request as MiniflareRequest, type Response as MiniflareResponse } from "miniflare";
import { WebSocket } from "ws";
import { loadCore } from "../../../js/src/core/index.ts";
import type { Itx } from "../../../js/src/node/itx.ts";
import { mintToken } from "../../../js/src/worker/tokens.ts";
import { workerBundle } from "../../../scripts/bundle-worker.ts";

const root = new URL("../../../", import.meta.url).pathname;
const tokenKeys = [{ id: "test", secret: "t".repeat(40) }];

export interface TestWorkerOptions {
  vars?: Record<string, string>;
  /** What the Worker's outgoing requests meet. */
  internet?: (request: MiniflareRequest) => Promise<MiniflareResponse> | MiniflareResponse;
  /** What plays AI Gateway. */
  gateway?: (request: MiniflareRequest) => Promise<MiniflareResponse> | MiniflareResponse;
  /** What plays the engine's host; without it no class has containers. */
  engine?: (request: MiniflareRequest) => Promise<MiniflareResponse> | MiniflareResponse;
  persist?: string;
  neighbour?: Neighbour;
}

/** Another Worker with a service binding to the project's API. */
export interface Neighbour {
  script: string;
  projectId: string;
}

export interface TestWorker extends AsyncDisposable {
  readonly url: URL;
  /** Asks the neighbour. */
  neighbour(path: string): Promise<unknown>;
  /** Calls a method of a Durable Object by the name of its binding. */
  call<T>(binding: string, name: string, method: string, ...values: unknown[]): Promise<T>;
  itx(projectId: string): Promise<Itx>;
  token(projectId: string, expiresInSeconds?: number): Promise<string>;
  operatorToken(): Promise<string>;
}

interface TestDoor {
  call(binding: string, name: string, method: string, values: unknown[]): Promise<unknown>;
}

export async function startTestWorker(options: TestWorkerOptions = {}): Promise<TestWorker> {
  const main = await configuration(options);
  const miniflare = new Miniflare({
    workers: [
      { name: "main", ...main },
      ...(options.neighbour === undefined ? [] : [neighbourOf(options.neighbour)]),
    ],
    ...(options.persist === undefined ? {} : { durableObjectsPersist: options.persist }),
  });
  const url = await miniflare.ready;
  const sockets: WebSocket[] = [];
  const connect = (path: string, token: string): unknown => {
    const address = new URL(path, url);
    address.protocol = "ws:";
    const socket = new WebSocket(address.href, { headers: { authorization: `Bearer ${token}` } });
    sockets.push(socket);
    return newWebSocketRpcSession(socket as never);
  };
  const token = (projectId: string, expiresInSeconds = 600) =>
    mintToken(tokenKeys, { projectId, expiresInSeconds });
  const door = connect("/test-door", "") as TestDoor;
  return {
    url,
    call: async <T>(binding: string, name: string, method: string, ...values: unknown[]) =>
      (await door.call(binding, name, method, values)) as T,
    neighbour: async (path) => {
      const worker = await miniflare.getWorker("neighbour");
      return (await worker.fetch(`http://neighbour${path}`)).json();
    },
    itx: async (projectId) => connect("/rpc", await token(projectId)) as Itx,
    token,
    operatorToken: () => mintToken(tokenKeys, { operator: true }),
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.terminate();
      await miniflare.dispose();
    },
  };
}

async function configuration(options: TestWorkerOptions) {
  const core = await loadCore();
  const classes: Record<string, string> = {
    STREAM: "StreamDurableObject",
    CATALOGUE: "CatalogueDurableObject",
    PROJECT: "ProjectDurableObject",
    SECRET: "SecretDurableObject",
    ...Object.fromEntries(core.instanceTypes().map(({ binding, className }) => [binding, className])),
  };
  return {
    modules: [
      { type: "ESModule" as const, path: "index.js", contents: await bundle() },
      {
        type: "CompiledWasm" as const,
        path: "core.wasm",
        contents: readFileSync(`${root}dist/wasm/core.wasm`),
      },
    ],
    compatibilityDate: "2026-06-01",
    compatibilityFlags: ["nodejs_compat"],
    durableObjects: Object.fromEntries(
      Object.entries(classes).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    bindings: {
      ENGINE_MODE: options.engine === undefined ? "none" : "embedded",
      TOKEN_KEYS: JSON.stringify(tokenKeys),
      SECRETS_KEYS: JSON.stringify([{ id: "test", key: Buffer.alloc(32, 7).toString("base64") }]),
      ...options.vars,
    },
    ...(options.internet === undefined ? {} : { outboundService: options.internet }),
    serviceBindings: {
      ...(options.gateway === undefined ? {} : { AI_GATEWAY: options.gateway }),
      ...(options.engine === undefined ? {} : { ENGINE: options.engine }),
    },
  };
}

function neighbourOf({ script, projectId }: Neighbour) {
  return {
    name: "neighbour",
    modules: true as const,
    script,
    compatibilityDate: "2026-06-01",
    serviceBindings: { ITX: { name: "main", entrypoint: "ItxEntrypoint", props: { projectId } } },
  };
}

let bundled: Promise<string> | null = null;

function bundle(): Promise<string> {
  bundled ??= build({
    ...workerBundle,
    entryPoints: ["tests/worker/entry.ts"],
    write: false,
    logLevel: "error",
  }).then(({ outputFiles }) => {
    const [file] = outputFiles;
    if (file === undefined) throw new Error("esbuild gave no file");
    return file.text;
  });
  return bundled;
}
