/** Port fetches: requests of a Durable Object to a port inside its container. */
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { agentPort, PortError } from "./control.ts";
import { answerOn, forward, forwardUpgrade, requestHeaders } from "./http-forward.ts";
import { type EngineErrorCode, engineHeader, engineHeaderPrefix } from "./protocol.ts";
import type { RunningContainer } from "./running-container.ts";

export function fetchPort(
  container: RunningContainer,
  port: number,
  incoming: IncomingMessage,
  response: ServerResponse,
): void {
  forward(incoming, response, toPort(container, port, incoming), {
    drop: isEngineHeader,
    refuse: (error) => {
      errorCode(container, error).then((code) => refusePort(response, code, error.message));
    },
  });
}

export function upgradePort(
  container: RunningContainer,
  port: number,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  forwardUpgrade(incoming, socket, head, toPort(container, port, incoming), {
    drop: isEngineHeader,
    refuse: (error, response) => {
      errorCode(container, error).then((code) => refusePort(response, code, error.message));
    },
  });
}

/** The answer that the Worker side turns into the runtime's own error. */
export function refusePort(response: ServerResponse, code: EngineErrorCode, message: string): void {
  response.writeHead(503, { [engineHeader.error]: code, "content-type": "text/plain" });
  response.end(message);
}

export function refuseUpgrade(
  incoming: IncomingMessage,
  socket: Duplex,
  code: EngineErrorCode,
  message: string,
): void {
  socket.on("error", () => socket.destroy());
  refusePort(answerOn(incoming, socket), code, message);
}

function toPort(container: RunningContainer, port: number, incoming: IncomingMessage) {
  const outgoing = request({
    agent: container.agent(port),
    method: incoming.method,
    path: incoming.url,
    headers: requestHeaders(incoming, isEngineHeader).flat(),
    setHost: false,
  });
  const name = incoming.headers[engineHeader.placed];
  const path = new URLSearchParams(incoming.url?.split("?")[1]).get("path");
  if (port === agentPort && typeof name === "string" && path !== null) {
    outgoing.once("response", ({ statusCode }) => {
      if (statusCode === 200) container.placed.set(name, path);
    });
  }
  return outgoing;
}

async function errorCode(container: RunningContainer, error: Error): Promise<EngineErrorCode> {
  const code = error instanceof PortError ? error.code : "connection_lost";
  return code === "connection_lost" && (await container.ends()) ? "not_running" : code;
}

function isEngineHeader(name: string): boolean {
  return name.startsWith(engineHeaderPrefix);
}
