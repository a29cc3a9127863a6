/** Which Worker a command talks to: `--url`, or the server that runs on this folder. */
import { chmod, readFile, rm, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { SandboxError } from "../core/error.ts";
import { connect, type ItxConnection } from "../node/client.ts";
import type { Itx } from "../node/itx.ts";

export interface GlobalOptions {
  url?: string;
  token?: string;
  context: string;
  dir: string;
  json?: boolean;
}

/** What a running `itx dev` leaves for the other commands, readable by its owner only. */
export interface RunningServer {
  pid: number;
  url: string;
  operatorToken: string;
}

const recordPath = (dir: string) => resolve(dir, "server.json");

export async function recordServer(dir: string, server: RunningServer): Promise<void> {
  await writeFile(recordPath(dir), JSON.stringify(server), { mode: 0o600 });
  await chmod(recordPath(dir), 0o600);
}

export const forgetServer = (dir: string) => rm(recordPath(dir), { force: true });

/** The server that runs on the folder, or null; a record whose process is gone counts as none. */
export async function runningServer(dir: string): Promise<RunningServer | null> {
  let record: RunningServer;
  try {
    record = JSON.parse(await readFile(recordPath(dir), "utf8"));
    process.kill(record.pid, 0);
  } catch {
    return null;
  }
  return record;
}

export const globals = (command: Command): GlobalOptions => command.optsWithGlobals<GlobalOptions>();

/** Address and token for the command; an operator's token acts for `--context`. */
export async function resolveTarget(
  options: GlobalOptions,
): Promise<{ url: string; token: string; project: string }> {
  const url = options.url ?? process.env.ITX_URL;
  const token = options.token ?? process.env.ITX_TOKEN;
  if (url !== undefined) {
    if (token === undefined)
      throw new SandboxError({
        code: "unauthorized",
        message: `--url ${url} needs a token; give --token or set ITX_TOKEN`,
        details: { url },
        status: 401,
        retryable: false,
      });
    return { url, token, project: options.context };
  }
  const server = await runningServer(options.dir);
  if (server === null)
    throw new SandboxError({
      code: "unreachable",
      message: `no server runs on ${resolve(options.dir)}; start one with \`itx dev --detach\`, or give --url and --token`,
      details: { dir: resolve(options.dir) },
      status: 502,
      retryable: false,
    });
  return { url: server.url, token: server.operatorToken, project: options.context };
}

/** Runs `action` with the project of the command line, and closes the connection whatever happens. */
export async function withItx<T>(
  command: Command,
  action: (itx: Itx, options: GlobalOptions) => Promise<T>,
): Promise<T> {
  const options = globals(command);
  await using connection: ItxConnection = await connect(await resolveTarget(options));
  return await action(connection.itx, options);
}
