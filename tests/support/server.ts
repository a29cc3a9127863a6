/** A real server in a folder of its own: real workerd, the real engine, and a client for each project asked for. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  connect,
  type Itx,
  type ItxConnection,
  type Server,
  type ServerOptions,
  startServer,
} from "../../js/src/node/index.ts";

export interface TestServer extends AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  readonly stateDir: string;
  /** What the runtime, the engine and the Worker logged. */
  readonly logs: readonly string[];
  /** The project's API over capnweb, on a connection that is kept until the end. */
  itx(projectId: string): Promise<Itx>;
  /** Forgets the connections: the next `itx` opens new ones. */
  reconnect(): Promise<void>;
  /** Ends the server, in peace without options, and starts it again on the same folder. */
  restart(options?: { sleep?: boolean }): Promise<void>;
  close(): Promise<void>;
}

export type TestServerOptions = Partial<ServerOptions> & {
  /** Keeps the folder at the end; the test that gave `stateDir` removes it. */
  keep?: boolean;
};

export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const stateDir = options.stateDir ?? (await mkdtemp(join(tmpdir(), "itx-test-")));
  const logs: string[] = [];
  const log = (line: string) => {
    logs.push(line);
    if (process.env.ITX_TEST_LOG === "1") console.error(line);
  };
  const start = () => startServer({ ...options, stateDir, log });
  let server = await start();
  let connections = new Map<string, Promise<ItxConnection>>();
  const disconnect = async () => {
    const open = [...connections.values()];
    connections = new Map();
    await Promise.allSettled(open.map(async (connection) => (await connection).close()));
  };
  const close = async () => {
    await disconnect();
    await server.close({ sleep: false });
    if (options.keep !== true) await rm(stateDir, { recursive: true, force: true });
  };
  return {
    get server() {
      return server;
    },
    get url() {
      return server.url;
    },
    stateDir,
    logs,
    async itx(projectId) {
      const known = connections.get(projectId);
      if (known !== undefined) return (await known).itx;
      const opened = server.mintToken(projectId).then((token) => connect({ url: server.url, token }));
      connections.set(projectId, opened);
      return (await opened).itx;
    },
    reconnect: disconnect,
    async restart(options) {
      await disconnect();
      await server.close(options);
      server = await start();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Waits until the check gives a value; fails with what was awaited. */
export async function eventually<T>(
  what: string,
  check: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    const value = await check();
    if (value !== undefined) return value;
    if (Date.now() > deadline) throw new Error(`waited 30 s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The code of the error that the call is refused with. */
export async function refusal(call: () => Promise<unknown>): Promise<string> {
  const error: unknown = await call().then(
    () => new Error("the call was not refused"),
    (reason: unknown) => reason,
  );
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return `no code: ${error instanceof Error ? error.message : String(error)}`;
}
