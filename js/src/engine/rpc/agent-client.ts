/** The agent's HTTP API as calls: JSON in and out, streams as web streams, failures as errors with the SDK's codes. */
import { type Agent, type IncomingMessage, request } from "node:http";
import { json, text } from "node:stream/consumers";
import { PortError } from "../control.ts";

/** A failure in the shape that the SDK reads on its side of the session: `code` and `details` as own properties. */
export class AgentError extends Error {
  readonly code: string;
  readonly details: Record<string, unknown>;
  constructor(code: string, message: string, details: Record<string, unknown>) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

export type Fields = Record<string, unknown>;

export class AgentClient {
  readonly #agent: Agent;
  readonly #ends: () => Promise<boolean>;

  /** `ends`: whether a connection that was lost was lost with its container. */
  constructor(agent: Agent, ends: () => Promise<boolean>) {
    this.#agent = agent;
    this.#ends = ends;
  }

  async get<T>(path: string): Promise<T> {
    return jsonOf<T>(await this.#send("GET", path), path);
  }

  async delete<T>(path: string): Promise<T> {
    return jsonOf<T>(await this.#send("DELETE", path), path);
  }

  async post<T>(path: string, body: Fields): Promise<T> {
    return jsonOf<T>(await this.#send("POST", path, JSON.stringify(body)), path);
  }

  /** A streamed answer, with its headers. Cancelling the stream ends the request. */
  async stream(method: "GET" | "POST", path: string, body?: Fields): Promise<AgentStream> {
    const incoming = await this.#send(method, path, body === undefined ? undefined : JSON.stringify(body));
    return { body: byteStream(incoming), headers: incoming.headers };
  }

  /** A streamed request; its pace is the agent's. */
  async upload<T>(path: string, body: ReadableStream<Uint8Array>): Promise<T> {
    return jsonOf<T>(await this.#send("PUT", path, body), path);
  }

  #send(method: string, path: string, body?: string | ReadableStream<Uint8Array>): Promise<IncomingMessage> {
    const type = typeof body === "string" ? "application/json" : "application/octet-stream";
    const outgoing = request({
      agent: this.#agent,
      method,
      path,
      headers: { host: "localhost:3000", ...(body === undefined ? {} : { "content-type": type }) },
    });
    return new Promise((resolve, reject) => {
      outgoing.on("error", async (error) => {
        // The session breaks off then, which says so: whoever asks again before that is known finds the old container.
        if (isLost(error) && (await this.#ends())) return;
        reject(error);
      });
      outgoing.on("response", (incoming) => {
        const status = incoming.statusCode ?? 502;
        if (status >= 200 && status < 300) resolve(incoming);
        else failureOf(incoming, status).then(reject, reject);
      });
      if (body instanceof ReadableStream)
        send(body, outgoing).catch((error: Error) => outgoing.destroy(error));
      else outgoing.end(body);
    });
  }
}

function isLost(error: Error & { code?: string }): boolean {
  return error instanceof PortError || error.code === "ECONNRESET" || error.code === "EPIPE";
}

export interface AgentStream {
  body: ReadableStream<Uint8Array>;
  headers: IncomingMessage["headers"];
}

async function send(body: ReadableStream<Uint8Array>, outgoing: NodeJS.WritableStream): Promise<void> {
  for await (const chunk of body) {
    if (!outgoing.write(chunk)) await new Promise((resolve) => outgoing.once("drain", resolve));
  }
  outgoing.end();
}

/** A message to the runtime holds 32 MiB, and a larger one ends the connection; some of it is for what stands around the answer. */
const maxAnswerBytes = 31 * 1024 * 1024;

async function jsonOf<T>(incoming: IncomingMessage, path: string): Promise<T> {
  const bytes = Number(incoming.headers["content-length"] ?? 0);
  if (bytes > maxAnswerBytes) {
    incoming.resume();
    const isCommand = path.startsWith("/api/execute");
    throw new AgentError(
      isCommand ? "COMMAND_EXECUTION_ERROR" : "FILE_TOO_LARGE",
      `${isCommand ? "The command has run; its result" : "The answer"} has ${bytes} bytes, and one message holds at most ${maxAnswerBytes}: use ${isCommand ? "execStream()" : "readFileStream()"}, or write to a file and read it in parts`,
      { bytes, limit: maxAnswerBytes },
    );
  }
  // The agent's answers are the SDK's own types, made by this project's agent and tested against the SDK.
  return (await json(incoming)) as T;
}

async function failureOf(incoming: IncomingMessage, status: number): Promise<AgentError> {
  const body = await text(incoming);
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    value = null;
  }
  const field = (name: string): unknown =>
    typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  const code = field("code");
  const message = field("message");
  const context = field("context");
  return new AgentError(
    typeof code === "string" ? code : "INTERNAL_ERROR",
    typeof message === "string" ? message : `the agent answered ${status}: ${body.slice(0, 200)}`,
    typeof context === "object" && context !== null ? { ...context } : {},
  );
}

/** Chunks leave the socket as the reader asks for them. */
function byteStream(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Buffer> = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
    },
    cancel() {
      incoming.destroy();
    },
  });
}
