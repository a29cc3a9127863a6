/** Starts containers with `sandboxd launch` itself, without the host, and talks to the agent inside. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { request } from "node:http";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { descendants } from "../soak/processes.ts";

const root = join(import.meta.dirname, "../..");
export const binary =
  process.env.SANDBOXD ??
  [join(root, "dist/engine/sandboxd"), join(root, "build/engine/engine/sandboxd")].find((path) =>
    existsSync(path),
  ) ??
  join(root, "dist/engine/sandboxd");

export const isRoot = process.getuid?.() === 0;
/** An id that owns nothing on the machine. */
export const ordinaryUid = 54321;

export interface ExecResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface StartOptions {
  id?: string;
  limits?: Partial<Record<"memoryBytes" | "pids" | "cpuWeight" | "cpuQuota" | "diskBytes", number>>;
  env?: Record<string, string>;
  ports?: (number | string)[];
  caCertificatePem?: string;
  /** Stands ready for a while before it is told whose it is. */
  waited?: boolean;
  /** As root: play an ordinary user. */
  ordinary?: boolean;
  /** Environment of the launcher, which must not be seen inside. */
  launcherEnv?: Record<string, string>;
}

/** One connection that the relay handed to the host's side. */
export interface Relayed {
  introduction: { kind: string; destination: string; port: number; host?: string };
  socket: Socket;
  /** What came after the introduction so far. */
  received: () => Buffer;
}

export class TestContainer {
  readonly directory: string;
  readonly relayed: Relayed[] = [];
  readonly lines: Record<string, unknown>[] = [];
  readonly process: ChildProcess;
  readonly ended: Promise<number | null>;
  /** Called for each relayed connection, when it has sent something. */
  onRelayed: (connection: Relayed) => void = ({ socket }) => socket.end();
  readonly #server: Server;
  #wake: (() => void)[] = [];

  constructor(options: StartOptions) {
    this.directory = mkdtempSync(join(tmpdir(), "sandboxd-test-"));
    const run = join(this.directory, "run");
    const upper = join(this.directory, "upper");
    for (const path of [run, upper]) mkdirSync(path);
    let command = binary;
    if (options.ordinary) {
      // The tree may lie where an ordinary user cannot look.
      command = join(this.directory, "sandboxd");
      copyFileSync(binary, command);
      for (const path of [this.directory, run, upper, command]) chownSync(path, ordinaryUid, ordinaryUid);
      chmodSync(command, 0o755);
    }
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#onRelayed(socket));
    this.#server.listen(join(run, "egress.sock"));
    const { env = {}, ports = [], caCertificatePem = "" } = options;
    const startConfig = { hostname: "box", env, ports, caCertificatePem };
    const config = {
      id: options.id ?? "test",
      limits: options.limits ?? {},
      runtimeDir: run,
      upperDir: upper,
      ...(options.ordinary ? { cacheDir: join(tmpdir(), `sandboxd-test-cache-${ordinaryUid}`) } : {}),
    };
    if (options.ordinary) {
      mkdirSync(config.cacheDir ?? "", { recursive: true });
      chownSync(config.cacheDir ?? "", ordinaryUid, ordinaryUid);
      this.#server.once("listening", () => chownSync(join(run, "egress.sock"), ordinaryUid, ordinaryUid));
    }
    this.process = spawn(command, ["launch"], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { PATH: process.env.PATH ?? "", ...options.launcherEnv },
      ...(options.ordinary ? { uid: ordinaryUid, gid: ordinaryUid } : {}),
    });
    const tell = () => this.process.stdin?.end(JSON.stringify(startConfig));
    this.process.stdin?.write(`${JSON.stringify(config)}\n`);
    if (options.waited !== true) tell();
    if (this.process.stdout === null) throw new Error("no stdout");
    createInterface({ input: this.process.stdout }).on("line", (line) => {
      const message = JSON.parse(line);
      if (message.prepared !== true) this.lines.push(message);
      else if (options.waited === true) this.#shellWaits().then(tell);
      this.#notify();
    });
    this.ended = once(this.process, "close").then(([code]) => {
      this.#notify();
      return code;
    });
  }

  /** Until the shell that was started with it has nothing left to do. */
  async #shellWaits(): Promise<void> {
    const waits = ({ pid, name }: { pid: number; name: string }) =>
      name === "bash" && readFileSync(`/proc/${pid}/stat`, "utf8").includes(") S ");
    while (this.process.exitCode === null && !descendants(this.process.pid ?? 0).some(waits)) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async ready(): Promise<void> {
    await this.until(() => this.lines.length > 0 || this.process.exitCode !== null);
    if (this.lines[0]?.ready !== true) throw new Error(`not ready: ${JSON.stringify(this.lines)}`);
  }

  get pid(): number {
    return Number(this.lines[0]?.pid);
  }

  /** Waits for something that happens on a line, an exit or a relayed connection. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  #notify(): void {
    const waiting = this.#wake;
    this.#wake = [];
    for (const wake of waiting) wake();
  }

  #onRelayed(socket: Socket): void {
    let head = "";
    const chunks: Buffer[] = [];
    let connection: Relayed | null = null;
    socket.on("error", () => undefined);
    socket.on("data", (chunk) => {
      if (connection === null) {
        head += chunk.toString("latin1");
        const line = head.indexOf("\n");
        if (line < 0) return;
        const received = () => Buffer.concat(chunks);
        connection = { introduction: JSON.parse(head.slice(0, line)), socket, received };
        this.relayed.push(connection);
        if (head.length > line + 1) chunks.push(Buffer.from(head.slice(line + 1), "latin1"));
      } else {
        chunks.push(chunk);
      }
      if (chunks.length > 0) this.onRelayed(connection);
      this.#notify();
    });
  }

  /** A connection to the agent (port 3000) or to a server inside. */
  async connect(port = 3000): Promise<Socket> {
    const socket = connect(join(this.directory, "run/control.sock"));
    await once(socket, "connect");
    socket.write(`PORT ${port}\n`);
    let answer = "";
    for (;;) {
      const chunk: Buffer | null = socket.read(1);
      if (chunk === null) {
        const ended = new Promise<void>((resolve) => socket.once("end", resolve));
        await Promise.race([once(socket, "readable"), ended]);
        if (socket.readableEnded) throw new Error(`control.sock: ${answer}`);
        continue;
      }
      if (chunk[0] === 10) break;
      answer += chunk.toString();
    }
    if (answer !== "OK") throw new Error(`control.sock: ${answer}`);
    return socket;
  }

  /** The agent's answer to a request, whatever its status. */
  async call(method: "POST" | "DELETE", path: string, body: object = {}): Promise<Record<string, unknown>> {
    const socket = await this.connect();
    const content = JSON.stringify(body);
    const sent = request({
      createConnection: () => socket,
      path,
      method,
      headers: {
        "content-type": "application/json",
        "content-length": Buffer.byteLength(content),
        connection: "close",
      },
    });
    sent.end(content);
    const [response] = await once(sent, "response");
    let text = "";
    for await (const chunk of response) text += chunk;
    socket.destroy();
    return JSON.parse(text);
  }

  async exec(command: string, sessionId = "test"): Promise<ExecResult> {
    const { exitCode, stdout, stderr, ...rest } = await this.call("POST", "/api/execute", {
      command,
      sessionId,
    });
    if (typeof exitCode !== "number") throw new Error(`exec: ${JSON.stringify(rest)}`);
    return { exitCode, stdout: String(stdout), stderr: String(stderr) };
  }

  /** Standard output of a command that must succeed. */
  async run(command: string): Promise<string> {
    const result = await this.exec(command);
    if (result.exitCode !== 0)
      throw new Error(`${command}: ${result.exitCode} ${result.stdout} ${result.stderr}`);
    return result.stdout.trim();
  }

  /** The host's side goes away. */
  async closeEgress(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }

  async stop(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) this.process.kill("SIGTERM");
    const code = await this.ended;
    await this.dispose();
    return code;
  }

  async dispose(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.ended;
    for (const { socket } of this.relayed) socket.destroy();
    this.#server.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export async function start(options: StartOptions = {}): Promise<TestContainer> {
  const container = new TestContainer(options);
  try {
    await container.ready();
    return container;
  } catch (error) {
    await container.dispose();
    throw error;
  }
}
