/** `import { open } from "iterate-sandboxes/node"`: a project in a folder, with its own server and engine. */
import { resolve } from "node:path";
import { SandboxError } from "../core/error.ts";
import { loadCore } from "../core/index.ts";
import { connect } from "./client.ts";
import type { Itx } from "./itx.ts";
import { type Server, startServer } from "./server.ts";

export interface OpenOptions {
  /** Where sandboxes, streams, secrets and snapshots are kept; `.itx` in the working directory without one. */
  dir?: string;
  /** The project's id: `[a-z0-9][a-z0-9_-]{0,62}`; `prj_local` without one. */
  project?: string;
  /**
   * `name` or `name:port` to `address:port`, or to `http://address:port` where TLS must not be spoken: serves public names locally. Out of
   * reach of sandboxes.
   */
  upstreams?: Record<string, string>;
  /** PEM certificates that are trusted on connections to upstreams, besides the public ones. */
  upstreamCa?: string;
  /** Further variables of the Worker, such as `OPENAI_API_KEY`. */
  vars?: Record<string, string>;
}

export interface Project extends AsyncDisposable, Itx {
  readonly itx: Itx;
  readonly url: string;
  readonly server: Server;
  /** Ends the server and every container; what was acknowledged stays in `dir`. */
  close(): Promise<void>;
}

function notOptions(got: unknown): SandboxError {
  return new SandboxError({
    code: "invalid_argument",
    message: `open was given ${JSON.stringify(got)}; it must be an object such as { dir: ".itx", project: "prj_demo" }`,
    details: { argument: "options" },
    status: 400,
    retryable: false,
  });
}

/** Starts a server on `dir` and connects to one of its projects. */
export async function open(options: OpenOptions = {}): Promise<Project> {
  if (typeof options !== "object" || options === null) throw notOptions(options);
  const project = (await loadCore()).assertProjectId(options.project ?? "prj_local");
  const server = await startServer({
    stateDir: resolve(options.dir ?? ".itx"),
    ...(options.upstreams === undefined ? {} : { upstreams: options.upstreams }),
    ...(options.upstreamCa === undefined ? {} : { upstreamCa: options.upstreamCa }),
    ...(options.vars === undefined ? {} : { vars: options.vars }),
  });
  try {
    const connection = await connect({ url: server.url, token: await server.mintToken(project) });
    const { itx } = connection;
    const close = async () => {
      await connection.close();
      await server.close();
    };
    return {
      itx,
      url: server.url,
      server,
      sandboxes: itx.sandboxes,
      secrets: itx.secrets,
      egress: itx.egress,
      streams: itx.streams,
      connections: itx.connections,
      close,
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await server.close();
    throw error;
  }
}
