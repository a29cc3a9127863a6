/** What a conformance case is, and what it is given. Cases run inside workerd: on the stub that `getSandbox` gives, or in the object. */
import assert from "node:assert/strict";
import type * as Sdk from "@cloudflare/sandbox";
import type { EngineEnv, Sandbox as EngineSandbox } from "../../../js/src/engine/sandbox.ts";

export type Transport = "http" | "websocket" | "rpc";

export type Sandbox = EngineSandbox<ConformanceEnv>;

export interface World {
  readonly transport: Transport;
  /** The shared sandbox of this transport, as an application has it. */
  readonly sandbox: Sandbox;
  /** Another sandbox, which nothing has started yet. */
  another(name: string, options?: Sdk.SandboxOptions): Sandbox;
  /** The SDK's module: cases are also read under Node, where it cannot be imported. */
  readonly sdk: typeof Sdk;
  readonly env: ConformanceEnv;
}

export interface ConformanceEnv extends EngineEnv {
  Sandbox: DurableObjectNamespace<Sandbox>;
  BACKUP_BUCKET: R2Bucket;
  SANDBOX_TRANSPORT: Transport;
}

/** The SDK's object, and what the runtime gave it. */
export interface Inside {
  readonly self: Sandbox;
  readonly ctx: DurableObjectState;
}

export interface Case {
  /** The sandbox in whose object it runs; null for one that runs outside, on the stub. */
  readonly inside: string | null;
  run(world: World, inside: Inside | null): Promise<void>;
}

/** Cases by the method they are for, such as `Sandbox.exec`, and there by what they show. */
export type Cases = Record<string, Record<string, Case>>;

export function client(run: (world: World) => Promise<void>): Case {
  return { inside: null, run };
}

/**
 * Runs on the SDK's object itself: its methods that no stub reaches, its callbacks, and its errors before they cross one.
 * `name` is a sandbox of the case's own.
 */
export function object(
  run: (self: Sandbox, world: World, ctx: DurableObjectState) => Promise<void>,
  name = "shared",
): Case {
  return {
    inside: name,
    run: (world, inside) => {
      if (inside === null) throw new TypeError("this case runs in the object");
      return run(inside.self, world, inside.ctx);
    },
  };
}

export interface Refusal {
  name: string;
  code: string | undefined;
  message: string;
}

/** The error that a call is refused with; the class by its name, since it is another class on each side of a stub. */
export async function refusal(call: () => unknown): Promise<Refusal> {
  try {
    await call();
  } catch (error) {
    assert(error instanceof Error, `what was thrown is no Error: ${String(error)}`);
    return { name: error.name, code: codeOf(error), message: error.message };
  }
  throw new assert.AssertionError({ message: "the call was not refused" });
}

/** The SDK's errors have their code in a getter, which no stub carries, and in the response that they were made from. */
function codeOf(error: Error): string | undefined {
  const response = "errorResponse" in error ? error.errorResponse : undefined;
  for (const holder of [error, response]) {
    if (typeof holder !== "object" || holder === null || !("code" in holder)) continue;
    if (typeof holder.code === "string") return holder.code;
  }
  return undefined;
}

/** Asserts the SDK's own class and code. */
export async function refuses(
  call: () => unknown,
  expected: { name: string; code?: string; message?: RegExp },
): Promise<void> {
  const got = await refusal(call);
  const { name, code, message } = expected;
  assert.equal(
    `${got.name} ${got.code}`,
    `${name} ${code}`,
    `refused with ${got.name} ${got.code}: ${got.message}`,
  );
  if (message !== undefined) assert.match(got.message, message);
}

export async function text(stream: ReadableStream<Uint8Array>): Promise<string> {
  return await new Response(stream).text();
}

/** Every event of a stream of server-sent events. */
export async function events<T>({ sdk }: World, stream: ReadableStream<Uint8Array>): Promise<T[]> {
  const got: T[] = [];
  for await (const event of sdk.parseSSEStream<T>(stream)) got.push(event);
  return got;
}

/** The first event that the check is true of; the stream is ended then. */
export async function eventWhere<T>(
  { sdk }: World,
  stream: ReadableStream<Uint8Array>,
  check: (event: T) => boolean,
): Promise<T> {
  const seen: T[] = [];
  for await (const event of sdk.parseSSEStream<T>(stream)) {
    if (check(event)) return event;
    seen.push(event);
  }
  throw new assert.AssertionError({ message: `the stream ended after ${JSON.stringify(seen)}` });
}

/** A WebSocket that a response carries, and the messages that arrived on it. */
export function socketOf(response: Response): {
  socket: WebSocket;
  next(check: (all: string) => boolean): Promise<string>;
} {
  const socket = response.webSocket;
  assert.equal(response.status, 101);
  assert(socket !== null);
  const decoder = new TextDecoder();
  let all = "";
  let wake = () => {};
  socket.addEventListener("message", ({ data }) => {
    all += typeof data === "string" ? data : decoder.decode(data as ArrayBuffer, { stream: true });
    wake();
  });
  socket.addEventListener("close", () => wake());
  socket.binaryType = "arraybuffer";
  socket.accept();
  return {
    socket,
    async next(check) {
      while (!check(all)) {
        assert(socket.readyState === WebSocket.OPEN, `the socket closed after ${JSON.stringify(all)}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return all;
    },
  };
}

/** Types a line into the terminal that the response opened, and waits until all of that was shown. */
export async function terminalAnswers(response: Response, line: string, shown: string[]): Promise<void> {
  const { socket, next } = socketOf(response);
  await next((all) => all.includes('"ready"'));
  socket.send(new TextEncoder().encode(`${line}\n`));
  await next((all) => shown.every((text) => all.includes(text)));
  socket.close(1000, "seen");
}

/** A request to upgrade, as a browser's. */
export function upgradeRequest(url: string): Request {
  return new Request(url, { headers: { upgrade: "websocket", connection: "Upgrade" } });
}

/** Waits until the check is true; fails with what was awaited. */
export async function eventually(what: string, check: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!(await check())) {
    assert(Date.now() < deadline, `waited 20 s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/**
 * As `refuses`, for a call that opens a stream: over its WebSocket the SDK makes an Error of its own of the refusal, with the
 * answer in its text.
 */
export async function streamRefuses(
  { transport }: World,
  call: () => unknown,
  expected: { name: string; code: string },
): Promise<void> {
  if (transport !== "websocket") return await refuses(call, expected);
  await refuses(call, {
    name: "Error",
    message: new RegExp(`^Stream error: \\d+ - .*"code":"${expected.code}"`),
  });
}
