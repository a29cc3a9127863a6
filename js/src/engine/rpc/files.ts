/** Files over capnweb: the SDK's `SandboxFilesAPI`, with raw bytes where the session can carry them. */
import { RpcTarget } from "capnweb";
import type { AgentClient } from "./agent-client.ts";

type Bytes = ReadableStream<Uint8Array>;

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
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
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

  writeFileStream(path: string, stream: Bytes, sessionId: string): Promise<unknown> {
    const query = new URLSearchParams({ path, sessionId });
    return this.#agent.upload(`/api/x/file?${query}`, stream);
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

function withEncoding(
  fields: Record<string, unknown>,
  encoding: string | undefined,
): Record<string, unknown> {
  return encoding === undefined ? fields : { ...fields, encoding };
}

function singleHeader(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}
