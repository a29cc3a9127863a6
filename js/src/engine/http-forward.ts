/** Carries one HTTP exchange, or one upgraded connection, from a server's side to a client's, streaming both ways in constant memory. */
import { type ClientRequest, type IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { pour } from "./reused-buffers.ts";

export type HeaderPair = [name: string, value: string];

const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** `rawHeaders` as pairs, in order and with repeats. */
export function headerPairs(rawHeaders: readonly string[]): HeaderPair[] {
  const pairs: HeaderPair[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    pairs.push([rawHeaders[index] ?? "", rawHeaders[index + 1] ?? ""]);
  }
  return pairs;
}

/** The headers that belong to the message: without those of one connection, and without those that `drop` names. */
export function endToEnd(
  rawHeaders: readonly string[],
  drop: (lowerCaseName: string) => boolean,
): HeaderPair[] {
  const pairs = headerPairs(rawHeaders);
  const listed = new Set(
    pairs
      .filter(([name]) => name.toLowerCase() === "connection")
      .flatMap(([, value]) =>
        value
          .toLowerCase()
          .split(",")
          .map((token) => token.trim()),
      ),
  );
  return pairs.filter(([name]) => {
    const lower = name.toLowerCase();
    return !hopByHop.has(lower) && !listed.has(lower) && !drop(lower);
  });
}

/** The headers to send on with a request: what {@link endToEnd} keeps, its framing, and what an upgrade needs. */
export function requestHeaders(
  request: IncomingMessage,
  drop: (lowerCaseName: string) => boolean,
): HeaderPair[] {
  const pairs = endToEnd(request.rawHeaders, drop);
  if (request.headers["transfer-encoding"] !== undefined) pairs.push(["transfer-encoding", "chunked"]);
  if (request.headers.upgrade !== undefined) {
    pairs.push(["connection", "upgrade"], ["upgrade", request.headers.upgrade]);
  }
  return pairs;
}

/** Sends the request's body, and answers with what comes back. `refuse` answers when nothing comes back. */
export function forward(
  request: IncomingMessage,
  response: ServerResponse,
  outgoing: ClientRequest,
  options: { drop: (lowerCaseName: string) => boolean; refuse: (error: Error) => void },
): void {
  outgoing.on("response", (incoming) => {
    response.writeHead(
      incoming.statusCode ?? 502,
      incoming.statusMessage,
      endToEnd(incoming.rawHeaders, options.drop).flat(),
    );
    pour(incoming, response);
    // An event stream's head does not wait for its first event; that of any other answer goes out with its first bytes.
    setImmediate(() => {
      if (!response.writableEnded && !response.destroyed) response.flushHeaders();
    });
  });
  outgoing.on("error", (error) => {
    if (response.headersSent) response.destroy();
    else if (!response.destroyed) options.refuse(error);
  });
  response.on("close", () => {
    if (!response.writableFinished) outgoing.destroy();
  });
  if (hasBody(request)) pour(request, outgoing);
  else outgoing.end();
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

export function asksForWebSocket(request: IncomingMessage): boolean {
  return (
    request.headers.upgrade?.toLowerCase() === "websocket" && request.method === "GET" && !hasBody(request)
  );
}

/** The head of a request as it would be without its offer of another protocol. */
export function requestWithoutUpgrade(request: IncomingMessage): Buffer {
  const offered = new Set(["upgrade", "http2-settings"]);
  const lines = headerPairs(request.rawHeaders).flatMap(([name, value]) => {
    if (offered.has(name.toLowerCase())) return [];
    if (name.toLowerCase() !== "connection") return [`${name}: ${value}`];
    const tokens = value.split(",").filter((token) => !offered.has(token.trim().toLowerCase()));
    return tokens.length === 0 ? [] : [`${name}: ${tokens.join(",")}`];
  });
  const start = `${request.method} ${request.url} HTTP/${request.httpVersion}`;
  return Buffer.from(`${[start, ...lines].join("\r\n")}\r\n\r\n`, "latin1");
}

/** Carries an upgrade: both sides become one byte stream once the peer has agreed; any other answer is passed on as it is. */
export function forwardUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  outgoing: ClientRequest,
  options: {
    drop: (lowerCaseName: string) => boolean;
    refuse: (error: Error, response: ServerResponse) => void;
  },
): void {
  socket.on("error", () => outgoing.destroy());
  socket.on("close", () => outgoing.destroy());
  outgoing.on("upgrade", (incoming, peer, peerHead) => {
    const kept = headerPairs(incoming.rawHeaders).filter(([name]) => !options.drop(name.toLowerCase()));
    socket.write(responseHead(incoming, kept));
    if (peerHead.length > 0) socket.write(peerHead);
    if (head.length > 0) peer.write(head);
    join(socket, peer);
  });
  outgoing.on("response", (incoming) => {
    const response = answerOn(request, socket);
    const kept = endToEnd(incoming.rawHeaders, options.drop);
    response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, kept.flat());
    pour(incoming, response);
  });
  outgoing.on("error", (error) => {
    if (!socket.destroyed) options.refuse(error, answerOn(request, socket));
  });
  outgoing.end();
}

/** A response for a socket that `upgrade` took from its server; the connection ends with it. */
export function answerOn(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  // ServerResponse writes to any duplex; its types name net.Socket, which upgrade sockets are.
  response.assignSocket(socket as import("node:net").Socket);
  response.on("finish", () => socket.end());
  return response;
}

/** Two byte streams become one; the end or failure of either ends both. */
export function join(left: Duplex, right: Duplex): void {
  const end = () => {
    left.destroy();
    right.destroy();
  };
  left.on("error", end);
  right.on("error", end);
  left.on("close", end);
  right.on("close", end);
  left.pipe(right);
  right.pipe(left);
}

function responseHead(incoming: IncomingMessage, headers: HeaderPair[]): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `HTTP/1.1 ${incoming.statusCode} ${incoming.statusMessage}\r\n${lines}\r\n`;
}
