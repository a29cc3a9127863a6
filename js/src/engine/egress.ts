/**
 * What leaves one container: connections that the relay inside hands over, with where they were meant to go. TLS ends here,
 * requests go to the Worker's interceptor; what no interceptor covers goes out directly where the container may, or nowhere.
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { createServer as createSocketServer, type Socket, type Server as SocketServer } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { CertificateAuthority } from "./certificates.ts";
import {
  describeTarget,
  type EgressConnection,
  parseRelayLine,
  type RequestTarget,
} from "./egress-target.ts";
import {
  answerOn,
  asksForWebSocket,
  forward,
  forwardUpgrade,
  join,
  requestHeaders,
  requestWithoutUpgrade,
} from "./http-forward.ts";
import { matchIntercept } from "./intercepts.ts";
import type { Outbound } from "./outbound.ts";
import {
  connectionHeader,
  engineHeader,
  engineHeaderPrefix,
  enginePath,
  type Intercept,
  type InterceptedConnection,
  interceptKey,
} from "./protocol.ts";
import type { WorkerCalls } from "./worker-calls.ts";

/** What a container's egress may do, and where its requests go. */
export interface EgressSource {
  readonly id: string;
  readonly intercepts: ReadonlyMap<string, Intercept>;
  readonly enableInternet: boolean;
}

export interface EgressOptions {
  outbound: Outbound;
  /** The Worker's address, known once it runs. */
  worker: () => WorkerCalls;
}

/** The relay's first line is an address, a port and a name of at most 253 bytes. */
const maxLineBytes = 1024;
/** A client that connects and says nothing is let go. */
const firstByteMs = 60_000;
/** The content type of a TLS record that begins a connection. */
const tlsHandshake = 0x16;
export const maxHeaderBytes = 128 * 1024;

export class EgressListener {
  readonly #http: Server;
  readonly #sockets: SocketServer;
  readonly #open = new Set<Socket>();
  readonly #connections = new WeakMap<object, EgressConnection>();
  readonly #authority: CertificateAuthority;
  readonly #source: EgressSource;
  readonly #options: EgressOptions;

  private constructor(authority: CertificateAuthority, source: EgressSource, options: EgressOptions) {
    this.#authority = authority;
    this.#source = source;
    this.#options = options;
    this.#sockets = createSocketServer({ allowHalfOpen: true }, (socket) => this.#accept(socket));
    this.#http = createServer({ maxHeaderSize: maxHeaderBytes, requestTimeout: 0, keepAliveTimeout: 60_000 });
    this.#http.on("request", (incoming, response) => this.#onRequest(incoming, response));
    this.#http.on("upgrade", (incoming, socket, head) => this.#onUpgrade(incoming, socket, head));
    this.#http.on("connect", (incoming, socket) => refuseConnect(incoming, socket));
    this.#http.on("clientError", (error, socket) => refuseBytes(error, socket));
  }

  static async listen(
    path: string,
    authority: CertificateAuthority,
    source: EgressSource,
    options: EgressOptions,
  ): Promise<EgressListener> {
    const listener = new EgressListener(authority, source, options);
    await new Promise<void>((resolve, reject) => {
      listener.#sockets.once("error", reject);
      listener.#sockets.listen(path, resolve);
    });
    return listener;
  }

  close(): void {
    this.#sockets.close();
    for (const socket of this.#open) socket.destroy();
  }

  #accept(socket: Socket): void {
    this.#open.add(socket);
    socket.on("close", () => this.#open.delete(socket));
    socket.on("error", () => socket.destroy());
    socket.setTimeout(firstByteMs, () => socket.destroy());
    let seen: Buffer = Buffer.alloc(0);
    // Reading by `readable` leaves the socket as new for TLS or HTTP.
    const onReadable = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
      const end = seen.indexOf(0x0a);
      if (end < 0 && seen.length > maxLineBytes) socket.destroy();
      // The byte after the line says whether TLS or HTTP follows.
      if (end < 0 || seen.length === end + 1) return;
      socket.off("readable", onReadable);
      socket.setTimeout(0);
      this.#dispatch(socket, seen.subarray(0, end).toString("utf8"), seen.subarray(end + 1));
    };
    socket.on("readable", onReadable);
  }

  #dispatch(socket: Socket, text: string, first: Buffer): void {
    const line = parseRelayLine(text);
    if (line === null) {
      socket.destroy();
      return;
    }
    socket.unshift(first);
    if (first[0] === tlsHandshake) this.#acceptTls(socket, line).catch(() => socket.destroy());
    else this.#serve(socket, { ...line, scheme: "http", sni: null });
  }

  async #acceptTls(socket: Socket, line: InterceptedConnection): Promise<void> {
    const target = { scheme: "https" as const, host: line.target, port: line.port };
    if (matchIntercept([...this.#source.intercepts.values()], target) === null) {
      if (!this.#source.enableInternet) {
        socket.destroy();
        return;
      }
      join(socket, await this.#options.outbound.connect(line.target, line.port));
      return;
    }
    const secure = new TLSSocket(socket, {
      isServer: true,
      ALPNProtocols: ["http/1.1"],
      // For clients that name no server: they connected to a literal address.
      secureContext: await this.#authority.contextFor(line.target),
      SNICallback: (name, callback) => {
        if (!/^[a-z0-9_][a-z0-9._-]{0,252}$/i.test(name)) {
          callback(new Error("the server name is not a host name"));
          return;
        }
        this.#authority.contextFor(name.toLowerCase()).then(
          (context) => callback(null, context),
          (error: Error) => callback(error),
        );
      },
    });
    secure.on("error", () => secure.destroy());
    secure.once("secure", () => {
      // The types say string; a hello without a name gives false.
      const name: unknown = Reflect.get(secure, "servername");
      this.#serve(secure, { ...line, scheme: "https", sni: typeof name === "string" ? name : null });
    });
  }

  #serve(socket: Duplex, connection: EgressConnection): void {
    this.#connections.set(socket, connection);
    this.#http.emit("connection", socket);
  }

  #onRequest(incoming: IncomingMessage, response: ServerResponse): void {
    const target = this.#targetOf(incoming, response);
    if (target === null) return;
    const intercept = this.#interceptFor(target);
    if (intercept === null) {
      if (this.#source.enableInternet) this.#options.outbound.serve(incoming, response, target.url, false);
      else disallowed(response);
      return;
    }
    forward(incoming, response, this.#toWorker(incoming, target, intercept), {
      drop: isEngineHeader,
      refuse: (error) => workerGone(response, error),
    });
  }

  #onUpgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (!asksForWebSocket(incoming)) {
      // Another protocol is only an offer, and a request with a body is one to be answered: it comes again without the offer.
      socket.unshift(Buffer.concat([requestWithoutUpgrade(incoming), head]));
      this.#http.emit("connection", socket);
      return;
    }
    const target = this.#targetOf(incoming, () => answerOn(incoming, socket));
    if (target === null) return;
    const intercept = this.#interceptFor(target);
    if (intercept === null) {
      if (this.#source.enableInternet) {
        this.#options.outbound.serveUpgrade(incoming, socket, head, target.url, false);
      } else disallowed(answerOn(incoming, socket));
      return;
    }
    forwardUpgrade(incoming, socket, head, this.#toWorker(incoming, target, intercept), {
      drop: isEngineHeader,
      refuse: (error, response) => workerGone(response, error),
    });
  }

  /** Where the request wants to go; answers it and gives null when its parts do not agree. */
  #targetOf(
    incoming: IncomingMessage,
    response: ServerResponse | (() => ServerResponse),
  ): RequestTarget | null {
    const connection = this.#connections.get(incoming.socket);
    const target = connection === undefined ? null : describeTarget(incoming, connection);
    if (target !== null && "url" in target) return target;
    const answer = typeof response === "function" ? response() : response;
    answer.shouldKeepAlive = false;
    sendError(
      answer,
      target?.status ?? 400,
      target?.code ?? "bad_request",
      target?.message ?? "unknown connection",
    );
    return null;
  }

  #interceptFor(target: RequestTarget): Intercept | null {
    return matchIntercept([...this.#source.intercepts.values()], target);
  }

  #toWorker(incoming: IncomingMessage, target: RequestTarget, intercept: Intercept) {
    const worker = this.#options.worker();
    const { target: name, port, sni } = target.connection;
    const headers = requestHeaders(incoming, (header) => isEngineHeader(header) || header === "expect");
    headers.push(
      [engineHeader.secret, worker.secret],
      [engineHeader.container, this.#source.id],
      [engineHeader.interceptor, interceptKey(intercept)],
      [engineHeader.url, target.url],
      [engineHeader.connection, JSON.stringify({ target: name, port, sni })],
    );
    return request({
      hostname: worker.hostname,
      port: worker.port,
      agent: incoming.headers.upgrade === undefined ? worker.agent : false,
      method: incoming.method,
      path: enginePath.egress,
      headers: headers.flat(),
    });
  }
}

function isEngineHeader(name: string): boolean {
  return name.startsWith(engineHeaderPrefix) || name === connectionHeader;
}

/** The door's own shape: whoever refuses, a person reads it the same way. */
function errorBody(code: string, detail: string): string {
  return `${JSON.stringify({ error: code, code, rule: null, detail })}\n`;
}

/** Answers so that a person who runs curl can read why. */
export function sendError(response: ServerResponse, status: number, code: string, message: string): void {
  const body = errorBody(code, message);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
}

/** The containers library's own answer where no handler is registered and the internet is off. */
function disallowed(response: ServerResponse): void {
  response.writeHead(520, { "content-type": "text/plain" });
  response.end("Origin is disallowed");
}

function workerGone(response: ServerResponse, error: Error): void {
  sendError(
    response,
    502,
    "egress_unavailable",
    `the project's door cannot be reached (${error.message}); try again`,
  );
}

function refuseConnect(incoming: IncomingMessage, socket: Duplex): void {
  socket.on("error", () => socket.destroy());
  sendError(
    answerOn(incoming, socket),
    405,
    "proxying_refused",
    "CONNECT is refused: there is no proxy here; connect to the host itself on port 80 or 443",
  );
}

function refuseBytes(error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const message = `what was sent is not a well-formed HTTP/1.1 request (${error.code ?? error.message}); only HTTP and HTTPS may leave`;
  const body = errorBody("not_http", message);
  socket.end(
    `HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
    () => socket.destroy(),
  );
}
