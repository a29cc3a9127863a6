/** Connections into a container: through its control socket to a port inside, and HTTP over them. */
import { Agent, type AgentOptions } from "node:http";
import { createConnection, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { EngineErrorCode } from "./protocol.ts";

/** The port of the agent itself. */
export const agentPort = 3000;

/** The control socket's answer line is `OK`, or `ERR` and an errno name: far below this. */
const maxAnswerBytes = 256;

export class PortError extends Error {
  readonly code: EngineErrorCode;
  constructor(code: EngineErrorCode, message: string) {
    super(message);
    this.name = "PortError";
    this.code = code;
  }
}

/** Opens a connection to a port inside. A connection made before the agent accepts waits for it. */
export function connectPort(controlSocket: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(controlSocket);
    let answer: Buffer = Buffer.alloc(0);
    const fail = (error: PortError) => {
      socket.destroy();
      reject(error);
    };
    // Reading by `readable` leaves the socket as new for whoever takes it over; `data` would leave it flowing or paused.
    const onReadable = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      answer = answer.length === 0 ? chunk : Buffer.concat([answer, chunk]);
      const end = answer.indexOf(0x0a);
      if (end < 0) {
        if (answer.length > maxAnswerBytes)
          fail(new PortError("connection_lost", "the agent's answer has no end"));
        return;
      }
      socket.off("readable", onReadable);
      socket.off("close", onClose);
      const line = answer.subarray(0, end).toString("latin1");
      if (line !== "OK") {
        fail(new PortError("not_listening", `port ${port}: ${line}`));
        return;
      }
      const rest = answer.subarray(end + 1);
      if (rest.length > 0) socket.unshift(rest);
      resolve(socket);
    };
    const onClose = () => fail(new PortError("connection_lost", `port ${port}: the connection closed`));
    socket.on("readable", onReadable);
    socket.on("close", onClose);
    // A failure is always followed by close, which rejects; after the hand-over the socket's user listens.
    socket.on("error", () => undefined);
    socket.write(`PORT ${port}\n`);
  });
}

/** An HTTP agent whose connections lead to one port of one container. */
export class PortAgent extends Agent {
  readonly #connect: () => Promise<Socket>;

  constructor(connect: () => Promise<Socket>, options: AgentOptions) {
    super(options);
    this.#connect = connect;
  }

  override createConnection(
    _options: object,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    this.#connect().then(
      (socket) => callback?.(null, socket),
      // Node reads the error first and leaves the stream alone then.
      (error: Error) => callback?.(error, undefined as never),
    );
    return undefined;
  }
}
