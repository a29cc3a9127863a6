/** Files over capnweb: the SDK's `SandboxFilesAPI`, with raw bytes where the session can carry them. */
import { RpcTarget } from "capnweb";
import type { AgentClient } from "./agent-client.ts";

type Bytes = ReadableStream<Uint8Array>;

/** A UUID. */
const placedNameBytes = 36;

interface RawFile {
  success: true;
  path: string;
  content: Bytes;
  size: number;
  mimeType: string;
  timestamp: string;
}

export class Files extends RpcTarget {
  readonly #agent: AgentClient;
  readonly #placed: Map<string, string>;

  /** `placed`: files that stand where they belong already, by the name that is sent in their stead. */
  constructor(agent: AgentClient, placed: Map<string, string>) {
    super();
    this.#agent = agent;
    this.#placed = placed;
  }

  readFile(path: string, sessionId: string, options?: { encoding?: string }): Promise<unknown> {
    if (options?.encoding === "none") return this.#readRaw(path, sessionId);
    return this.#agent.post("/api/read", withEncoding({ path, sessionId }, options?.encoding));
  }

  async readFileStream(path: string, sessionId: string): Promise<Bytes> {
    return (await this.#agent.stream("POST", "/api/read/stream", { path, sessionId })).body;
  }

  writeFile(
    path: string,
    content: string,
    sessionId: string,
    options?: { encoding?: string; permissions?: string },
  ): Promise<unknown> {
    const fields = withEncoding({ path, content, sessionId }, options?.encoding);
    const { permissions } = options ?? {};
    return this.#agent.post("/api/write", permissions === undefined ? fields : { ...fields, permissions });
  }

  async writeFileStream(path: string, stream: Bytes, sessionId: string): Promise<unknown> {
    const { first, whole } = await peek(stream);
    if (this.#takePlaced(path, first)) {
      // To its end: the peer closes what it writes to.
      await whole.pipeTo(new WritableStream());
      return { success: true, path, timestamp: new Date().toISOString() };
    }
    const query = new URLSearchParams({ path, sessionId });
    return this.#agent.upload(`/api/x/file?${query}`, whole);
  }

  #takePlaced(path: string, first: Uint8Array | undefined): boolean {
    if (first?.byteLength !== placedNameBytes) return false;
    const name = new TextDecoder().decode(first);
    return this.#placed.get(name) === path && this.#placed.delete(name);
  }

  deleteFile(path: string, sessionId: string): Promise<unknown> {
    return this.#agent.post("/api/delete", { path, sessionId });
  }

  renameFile(oldPath: string, newPath: string, sessionId: string): Promise<unknown> {
    return this.#agent.post("/api/rename", { oldPath, newPath, sessionId });
  }

  moveFile(sourcePath: string, destinationPath: string, sessionId: string): Promise<unknown> {
    return this.#agent.post("/api/move", { sourcePath, destinationPath, sessionId });
  }

  mkdir(path: string, sessionId: string, options?: { recursive?: boolean }): Promise<unknown> {
    return this.#agent.post("/api/mkdir", { path, sessionId, recursive: options?.recursive ?? false });
  }

  listFiles(path: string, sessionId: string, options?: object): Promise<unknown> {
    return this.#agent.post("/api/list-files", { path, sessionId, options: options ?? {} });
  }

  exists(path: string, sessionId: string): Promise<unknown> {
    return this.#agent.post("/api/exists", { path, sessionId });
  }

  async #readRaw(path: string, sessionId: string): Promise<RawFile> {
    const query = new URLSearchParams({ path, sessionId });
    const { body, headers } = await this.#agent.stream("GET", `/api/x/file?${query}`);
    return {
      success: true,
      path,
      content: body,
      size: Number(headers["content-length"] ?? 0),
      mimeType: singleHeader(headers["x-mime-type"]) ?? "application/octet-stream",
      timestamp: new Date().toISOString(),
    };
  }
}

/** A stream's first piece, and the stream with it. */
async function peek(stream: Bytes): Promise<{ first: Uint8Array | undefined; whole: Bytes }> {
  const reader = stream.getReader();
  const { value: first } = await reader.read();
  const whole: Bytes = new ReadableStream({
    start(controller) {
      if (first === undefined) controller.close();
      else controller.enqueue(first);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { first, whole };
}

function withEncoding(
  fields: Record<string, unknown>,
  encoding: string | undefined,
): Record<string, unknown> {
  return encoding === undefined ? fields : { ...fields, encoding };
}

function singleHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
