/** The Workers runtime: Miniflare with the built Worker, tied to this process's life and watched for its own end. */
import type { ChildProcess } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { rename, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { MiniflareOptions } from "miniflare";
import { SandboxError } from "../core/error.ts";
import { loadMiniflare } from "./load-miniflare.ts";
import { userRuntimeDir } from "./state-dir.ts";

export interface Workerd {
  /** Where the Worker itself listens. */
  url: URL;
  pid: number | undefined;
  /** Settles when the process is gone, with how it ended. */
  exited: Promise<WorkerdEnd>;
  close(): Promise<void>;
}

export interface WorkerdEnd {
  exitCode: number | null;
  signal: string | null;
}

/** The worker's address among the process's sockets. */
const workerName = "itx";

/** Starts workerd and returns when the Worker answers on `host:port`; 0 takes a free port. */
export async function startWorkerd(
  worker: MiniflareWorker,
  listen: { host: string; port: number },
  log: (line: string) => void,
): Promise<Workerd> {
  const { Miniflare, NoOpLog } = await loadMiniflare();
  process.env.MINIFLARE_WORKERD_PATH = await tether();
  const children: ChildProcess[] = [];
  const onChild = (message: unknown) => children.push((message as { process: ChildProcess }).process);
  subscribe("child_process", onChild);
  // What the runtime says of a failed start goes to the log only where no error of ours says it better.
  let held: string[] | null = [];
  const tell = (line: string) => (held === null ? log(line) : held.push(line));
  const release = () => {
    for (const line of held ?? []) log(line);
    held = null;
  };
  const options: MiniflareOptions = {
    ...worker,
    name: workerName,
    host: "127.0.0.1",
    port: 0,
    log: new NoOpLog(),
    handleRuntimeStdio: (stdout: Readable, stderr: Readable) => {
      for (const stream of [stdout, stderr]) lines(stream, tell);
    },
    unsafeDirectSockets: [{ host: listen.host, port: listen.port }],
    stripCfConnectingIp: false,
  };
  const miniflare = withoutLastWord(() => new Miniflare(options));
  try {
    await miniflare.ready;
    const url = await miniflare.unsafeGetDirectURL(workerName);
    const child = children.find(({ spawnfile }) => spawnfile === process.env.MINIFLARE_WORKERD_PATH);
    if (child === undefined)
      throw new Error("the Workers runtime was started, but is not among the child processes");
    release();
    return { url, pid: child.pid, exited: exitOf(child), close: () => miniflare.dispose() };
  } catch (error) {
    await miniflare.dispose().catch(() => undefined);
    const known = inUse(error, listen);
    if (known === null) release();
    throw known ?? error;
  } finally {
    unsubscribe("child_process", onChild);
  }
}

function inUse(error: unknown, { host, port }: { host: string; port: number }): SandboxError | null {
  if (!(error instanceof Error) || !("code" in error) || error.code !== "ERR_ADDRESS_IN_USE") return null;
  return new SandboxError({
    code: "address_in_use",
    message: `something listens on ${host}:${port} already; end it, or take another port: 0 is a free one`,
    details: { host, port },
    status: 409,
    retryable: true,
  });
}

/**
 * Miniflare's first instance listens for the signals that end a process, and ends it at once: whoever else listens, to close in order,
 * would not come to it. Its listeners are for processes in which nobody else does.
 */
function withoutLastWord<T>(make: () => T): T {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const before = new Map(signals.map((signal) => [signal, new Set(process.listeners(signal))]));
  const made = make();
  for (const signal of signals) {
    for (const listener of process.listeners(signal)) {
      if (before.get(signal)?.has(listener)) continue;
      process.removeListener(signal, listener);
      // In front: a listener that waits for one signal alone is still counted then.
      process.prependListener(signal, () => {
        if (process.listenerCount(signal) === 1) listener(signal);
      });
    }
  }
  return made;
}

/** What of Miniflare's options the server decides. */
export type MiniflareWorker = Extract<MiniflareOptions, { modules: unknown }>;

/** A program that becomes workerd, but dies with this process, however this process dies. */
async function tether(): Promise<string> {
  const require = createRequire(import.meta.url);
  const main: { default: string } = require("workerd");
  const script = `#!/bin/sh\nexec setpriv --pdeathsig KILL -- '${main.default.replaceAll("'", "'\\''")}' "$@"\n`;
  // Servers of several installations share the folder, and one may start it while another writes.
  const name = createHash("sha256").update(script).digest("hex").slice(0, 16);
  const path = join(await userRuntimeDir(), `workerd-${name}`);
  const draft = `${path}.${randomUUID()}`;
  await writeFile(draft, script, { mode: 0o700 });
  await rename(draft, path);
  return path;
}

function exitOf(child: ChildProcess): Promise<WorkerdEnd> {
  const { exitCode, signalCode } = child;
  if (exitCode !== null || signalCode !== null) return Promise.resolve({ exitCode, signal: signalCode });
  return new Promise((resolve) => child.once("exit", (code, signal) => resolve({ exitCode: code, signal })));
}

function lines(stream: Readable, log: (line: string) => void): void {
  createInterface({ input: stream }).on("line", log);
}
