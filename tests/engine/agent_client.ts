import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");

/** The agent as a program of its own, built when it is not up to date; AGENT_MAIN names one that is ready. */
function agentProgram(): string {
  const ready = process.env.AGENT_MAIN;
  if (ready !== undefined && ready !== "") return ready;
  const folder = join(root, "build/engine");
  if (!existsSync(join(folder, "CMakeCache.txt"))) {
    execFileSync("cmake", ["--preset", "engine"], { cwd: root, stdio: "pipe" });
  }
  execFileSync("cmake", ["--build", folder, "--target", "agent_main"], { cwd: root, stdio: "pipe" });
  return join(folder, "engine/agent_main");
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly bytes: Buffer;
  json(): Record<string, unknown>;
}

export interface SseEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** One agent in a directory of its own, outside any namespace. */
export class Agent {
  readonly folder: string;
  readonly workspace: string;
  readonly socketPath: string;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, folder: string) {
    this.#process = process;
    this.folder = folder;
    this.workspace = join(folder, "workspace");
    this.socketPath = join(folder, "control.sock");
  }

  static async start(): Promise<Agent> {
    const program = agentProgram();
    const folder = mkdtempSync(join(tmpdir(), "agent-"));
    mkdirSync(join(folder, "workspace"));
    const child = spawn(
      program,
      [join(folder, "control.sock"), join(folder, "workspace"), join(folder, "run")],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    if (child.stdout === null) throw new Error("no output");
    await once(child.stdout, "data");
    return new Agent(child, folder);
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null) {
      const ended = once(this.#process, "exit");
      this.#process.kill("SIGTERM");
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A connection whose first line was answered with OK. */
  async connect(port = 3000): Promise<Socket> {
    const socket = connect(this.socketPath);
    socket.write(`PORT ${port}\n`);
    const line = await new Promise<string>((resolve, reject) => {
      let text = "";
      const read = (): void => {
        for (let byte: Buffer | null = socket.read(1); byte !== null; byte = socket.read(1)) {
          if (byte.toString() === "\n") {
            socket.off("readable", read);
            resolve(text);
            return;
          }
          text += byte.toString();
        }
      };
      socket.on("readable", read);
      socket.once("error", reject);
    });
    if (line !== "OK") throw new Error(line);
    return socket;
  }

  async open(method: string, path: string, body?: unknown): Promise<IncomingMessage> {
    const socket = await this.connect();
    const bytes =
      body === undefined ? undefined : Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const request = httpRequest(
        {
          method,
          path,
          createConnection: () => socket,
          headers: bytes === undefined ? {} : { "Content-Length": bytes.length },
        },
        resolve,
      );
      request.once("error", reject);
      request.end(bytes);
    });
  }

  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await this.open(method, path, body);
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(Buffer.from(chunk));
    response.socket.destroy();
    const bytes = Buffer.concat(chunks);
    return {
      status: response.statusCode ?? 0,
      headers: response.headers,
      bytes,
      json: () => JSON.parse(bytes.toString()) as Record<string, unknown>,
    };
  }

  async post(path: string, body: unknown): Promise<Record<string, unknown>> {
    return (await this.call("POST", path, body)).json();
  }

  async exec(command: string, options: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    return this.post("/api/execute", { command, sessionId: "test", ...options });
  }

  /** The events of a stream until its end, or until `stop` says so. */
  async events(
    method: string,
    path: string,
    body?: unknown,
    stop: (event: SseEvent) => boolean = () => false,
  ): Promise<SseEvent[]> {
    const response = await this.open(method, path, body);
    const events: SseEvent[] = [];
    let text = "";
    // A character may come in two pieces.
    for await (const chunk of response.setEncoding("utf8")) {
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = JSON.parse(text.slice("data: ".length, end)) as SseEvent;
        text = text.slice(end + 2);
        events.push(event);
        if (stop(event)) {
          response.destroy();
          return events;
        }
      }
    }
    response.socket.destroy();
    return events;
  }
}
