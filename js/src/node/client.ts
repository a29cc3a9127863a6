/** A client of a running Worker: capnweb over one WebSocket, authorised by a token that never stands in an address. */
import "../engine/websocket-global.ts";
import { newWebSocketRpcSession, RpcPromise, RpcStub } from "capnweb";
import { WebSocket } from "ws";
import { SandboxError } from "../core/error.ts";
import { loadCore } from "../core/index.ts";
import type { Itx } from "./itx.ts";

/** Every object has a `constructor`; a stub's is the library's class, which would answer a call with JavaScript's own words. */
const stubClasses: readonly object[] = [RpcStub, RpcPromise];
for (const stubClass of stubClasses) {
  Object.defineProperty(Reflect.get(stubClass, "prototype"), "constructor", {
    value: () => Promise.reject(noConstructor()),
    writable: true,
    configurable: true,
  });
}

function noConstructor(): SandboxError {
  return new SandboxError({
    code: "unknown_method",
    message: "there is no method constructor; __describe() of a sandbox lists its methods",
    details: { method: "constructor" },
    status: 404,
    retryable: false,
  });
}

export interface ConnectOptions {
  /** The Worker's address, `http(s)://host[:port]`. */
  url: string;
  /** A token of the project, or of an operator together with `project`. */
  token: string;
  /** The project an operator's token acts for. */
  project?: string;
}

export interface ItxConnection extends AsyncDisposable {
  readonly itx: Itx;
  close(): Promise<void>;
}

/**
 * Opens the connection and waits until the Worker has accepted the token.
 * @throws SandboxError `unauthorized` for a refused token, `unreachable` for everything that keeps the connection from opening.
 */
export async function connect(options: ConnectOptions): Promise<ItxConnection> {
  const address = rpcAddress(options);
  if (options.project !== undefined) (await loadCore()).assertProjectId(options.project);
  const socket = new WebSocket(address.href, {
    headers: { authorization: `Bearer ${options.token}` },
    perMessageDeflate: false,
  });
  await opened(socket, options.url);
  const session = sessionOn(socket);
  const close = () => closed(socket);
  return { itx: session, close, [Symbol.asyncDispose]: close };
}

/** A socket without a session would keep the process alive. */
function sessionOn(socket: WebSocket): Itx {
  try {
    // capnweb asks for the events and methods that ws has; the types of the two differ only in what nobody calls here.
    const session: unknown = newWebSocketRpcSession(socket as never);
    if (!isItx(session)) throw new TypeError("capnweb gave no session");
    return session;
  } catch (error) {
    socket.terminate();
    throw error;
  }
}

function isItx(value: unknown): value is Itx {
  return (typeof value === "object" || typeof value === "function") && value !== null;
}

/** From JavaScript anything may come. */
function rpcAddress(options: Partial<ConnectOptions> = {}): URL {
  const { url, token, project } = options;
  const address = typeof url === "string" && URL.canParse("/rpc", url) ? new URL("/rpc", url) : null;
  if (address === null || !/^https?:$/.test(address.protocol)) {
    throw invalid(
      "url",
      `the address of the Worker is ${JSON.stringify(url)}; it must be http://host[:port] or https://host[:port]`,
    );
  }
  if (typeof token !== "string" || token === "") {
    throw invalid("token", "the token is missing; mint one with `itx token`, or server.mintToken(project)");
  }
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  if (project !== undefined) address.searchParams.set("project", project);
  return address;
}

function invalid(argument: string, message: string): SandboxError {
  return new SandboxError({
    code: "invalid_argument",
    message,
    details: { argument },
    status: 400,
    retryable: false,
  });
}

function opened(socket: WebSocket, url: string): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("open", () => resolve());
    socket.once("unexpected-response", (_request, response) => {
      reject(
        new SandboxError({
          code: response.statusCode === 401 ? "unauthorized" : "unreachable",
          message:
            response.statusCode === 401
              ? `${url} refused the token; mint one with \`itx token\`, or check which project it is for: a project's token acts for that one alone, an operator's needs one named`
              : `${url} answered ${response.statusCode} instead of opening a connection`,
          details: { url, status: response.statusCode ?? 0 },
          status: response.statusCode ?? 502,
          retryable: response.statusCode !== 401,
        }),
      );
      socket.terminate();
    });
    socket.once("error", (error) =>
      reject(
        new SandboxError({
          code: "unreachable",
          message: `${url} cannot be reached (${error.message}); start a server with \`itx dev\`, or give --url`,
          details: { url },
          status: 502,
          retryable: true,
        }),
      ),
    );
  });
}

function closed(socket: WebSocket): Promise<void> {
  if (socket.readyState === WebSocket.CLOSED) return Promise.resolve();
  return new Promise((resolve) => {
    // A peer that is gone never answers the closing handshake; the socket is ended after a moment all the same.
    const timer = setTimeout(() => socket.terminate(), 1_000);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.close();
  });
}
