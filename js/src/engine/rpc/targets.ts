/**
 * The container API that the SDK speaks over its rpc transport (capnweb), carried out through the agent's HTTP API. Names,
 * arguments and results are the SDK's `Sandbox…API` interfaces.
 */
import { RpcTarget } from "capnweb";
import type { AgentClient, Fields } from "./agent-client.ts";

type Env = Record<string, string | undefined>;
type Bytes = ReadableStream<Uint8Array>;

/** Options as own fields of a request: those that are undefined are left out. */
function present(options: Fields | undefined): Fields {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined));
}

export class Commands extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  execute(
    command: string,
    sessionId: string,
    options?: { timeoutMs?: number; env?: Env; cwd?: string; origin?: string },
  ) {
    return this.#agent.post("/api/execute", { command, sessionId, ...present(options) });
  }

  async executeStream(
    command: string,
    sessionId: string,
    options?: { timeoutMs?: number; env?: Env; cwd?: string; origin?: string },
  ): Promise<Bytes> {
    const body = { command, sessionId, ...present(options) };
    return (await this.#agent.stream("POST", "/api/execute/stream", body)).body;
  }
}

export class Processes extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  startProcess(command: string, sessionId: string, options?: Fields) {
    return this.#agent.post("/api/process/start", { command, sessionId, ...present(options) });
  }

  listProcesses() {
    return this.#agent.get("/api/process/list");
  }

  getProcess(id: string) {
    return this.#agent.get(`/api/process/${encodeURIComponent(id)}`);
  }

  killProcess(id: string) {
    return this.#agent.delete(`/api/process/${encodeURIComponent(id)}`);
  }

  killAllProcesses() {
    return this.#agent.delete("/api/process/kill-all");
  }

  getProcessLogs(id: string) {
    return this.#agent.get(`/api/process/${encodeURIComponent(id)}/logs`);
  }

  async streamProcessLogs(id: string): Promise<Bytes> {
    return (await this.#agent.stream("GET", `/api/process/${encodeURIComponent(id)}/stream`)).body;
  }
}

export class Ports extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  async watchPort(request: Fields): Promise<Bytes> {
    return (await this.#agent.stream("POST", "/api/port-watch", request)).body;
  }
}

/** What the SDK's own client waits for; the agent bounds the clone with it. */
const defaultCloneMs = 600_000;

export class Git extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  checkout(
    repoUrl: string,
    sessionId: string,
    options?: { branch?: string; targetDir?: string; depth?: number; timeoutMs?: number },
  ) {
    const { timeoutMs = defaultCloneMs, ...rest } = options ?? {};
    return this.#agent.post("/api/git/checkout", { repoUrl, sessionId, timeoutMs, ...present(rest) });
  }
}

export class Utils extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  async ping(): Promise<string> {
    return (await this.#agent.get<{ message: string }>("/api/ping")).message;
  }

  async getVersion(): Promise<string> {
    return (await this.#agent.get<{ version: string }>("/api/version")).version;
  }

  async getCommands(): Promise<string[]> {
    return (await this.#agent.get<{ availableCommands: string[] }>("/api/commands")).availableCommands;
  }

  createSession(options: Fields) {
    return this.#agent.post("/api/session/create", present(options));
  }

  deleteSession(sessionId: string) {
    return this.#agent.post("/api/session/delete", { sessionId });
  }

  listSessions() {
    return this.#agent.get("/api/session/list");
  }
}

export class Backup extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  createArchive(
    dir: string,
    archivePath: string,
    sessionId: string,
    options?: { excludes?: string[]; gitignore?: boolean; compression?: unknown },
  ) {
    return this.#agent.post("/api/backup/create", {
      dir,
      archivePath,
      sessionId,
      gitignore: options?.gitignore ?? false,
      excludes: options?.excludes ?? [],
      ...present({ compression: options?.compression }),
    });
  }

  restoreArchive(dir: string, archivePath: string, sessionId: string) {
    return this.#agent.post("/api/backup/restore", { dir, archivePath, sessionId });
  }

  uploadParts(request: Fields) {
    return this.#agent.post("/api/backup/upload-parts", request);
  }
}

export class Watch extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  /** Settles once the watch is in place: the agent's first event says so, and stays in the stream. */
  async watch(request: Fields): Promise<Bytes> {
    return (await this.#agent.stream("POST", "/api/watch", request)).body;
  }

  checkChanges(request: Fields) {
    return this.#agent.post("/api/watch/check", request);
  }
}
