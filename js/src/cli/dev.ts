/** `itx dev`: the local server, in the foreground or detached. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { Command } from "commander";
import { SandboxError } from "../core/error.ts";
import { startServer } from "../node/server.ts";
import { makeStateDir } from "../node/state-dir.ts";
import { ExitStatus } from "./errors.ts";
import { readGiven, wholeNumber } from "./input.ts";
import { printResult } from "./output.ts";
import { forgetServer, type GlobalOptions, globals, recordServer, runningServer } from "./target.ts";

interface DevOptions {
  port: number;
  detach?: boolean;
  stop?: boolean;
  upstream?: string[];
  upstreamCa?: string;
  var?: string[];
}

/** What a detached child writes on its channel once it serves. */
interface Started {
  url: string;
}

export function devCommand(): Command {
  return new Command("dev")
    .description("run the server and the embedded engine on a folder")
    .option("--port <port>", "the port on loopback; a free one with 0", wholeNumber(0, 65_535), 8787)
    .option("--detach", "keep it running in the background")
    .option("--stop", "end the server that runs on the folder")
    .option("--upstream <host=address...>", "serve a public name locally, such as api.test=127.0.0.1:9000")
    .option(
      "--upstream-ca <file>",
      "PEM certificates to trust on connections to these, besides the public ones",
    )
    .option("--var <name=value...>", "a variable of the Worker, such as SANDBOX_TRANSPORT=http")
    .addHelpText("after", "\nExamples:\n  $ itx dev\n  $ itx dev --detach\n  $ itx dev --stop")
    .action(async (options: DevOptions, command: Command) => {
      const global = globals(command);
      if (options.stop === true) return stop(global);
      const running = await runningServer(global.dir);
      if (running !== null)
        throw new SandboxError({
          code: "server_running",
          message: `a server already runs on ${resolve(global.dir)} at ${running.url}; end it with \`itx dev --stop\``,
          details: { url: running.url },
          status: 409,
          retryable: false,
        });
      if (options.detach === true) return detach(global, options);
      return serve(global, options, command);
    });
}

function pairs(name: string, values: string[] | undefined, command: Command): Record<string, string> {
  return Object.fromEntries(
    (values ?? []).map((value) => {
      const equals = value.indexOf("=");
      if (equals < 1) command.error(`error: ${name} wants name=value, got ${JSON.stringify(value)}`);
      return [value.slice(0, equals), value.slice(equals + 1)];
    }),
  );
}

async function serve(global: GlobalOptions, options: DevOptions, command: Command): Promise<void> {
  const server = await startServer({
    stateDir: resolve(global.dir),
    port: options.port,
    upstreams: pairs("--upstream", options.upstream, command),
    ...(options.upstreamCa === undefined
      ? {}
      : { upstreamCa: await readGiven(options.upstreamCa, "--upstream-ca") }),
    vars: pairs("--var", options.var, command),
    log: (line) => {
      // A terminal shows what is structured; a log has everything that the runtime and its libraries say.
      if (!process.stderr.isTTY || line.startsWith('{"')) process.stderr.write(`${line}\n`);
    },
  });
  await recordServer(global.dir, { pid: process.pid, url: server.url, operatorToken: server.operatorToken });
  const started: Started = { url: server.url };
  process.send?.(started);
  printResult(`serving ${resolve(global.dir)} at ${server.url} (Ctrl-C ends it)`, started, global.json);
  const stopped = new AbortController();
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  await Promise.race(signals.map((signal) => once(process, signal, { signal: stopped.signal })));
  stopped.abort();
  const count = server.engine.running().length;
  if (count > 0)
    console.error(`putting ${count} sandbox${count === 1 ? "" : "es"} to sleep; again to end at once`);
  for (const signal of signals) process.once(signal, () => process.exit(130));
  await server.close();
  await forgetServer(global.dir);
}

async function detach(global: GlobalOptions, options: DevOptions): Promise<void> {
  await makeStateDir(resolve(global.dir));
  const logPath = resolve(global.dir, "dev.log");
  await using log = await open(logPath, "a", 0o600);
  const { size: before } = await log.stat();
  const child = spawn(
    process.execPath,
    [...process.execArgv, ...process.argv.slice(1).filter((a) => a !== "--detach")],
    {
      detached: true,
      stdio: ["ignore", log.fd, log.fd, "ipc"],
    },
  );
  const started = await Promise.race([
    once(child, "message").then(([message]: Started[]) => message),
    once(child, "exit").then(() => undefined),
  ]);
  if (started === undefined) {
    // What an earlier server wrote is another story.
    const said = (await readFile(logPath)).subarray(before).toString("utf8");
    console.error(said.trimEnd().split("\n").slice(-20).join("\n"));
    throw new ExitStatus(1);
  }
  child.disconnect();
  child.unref();
  printResult(
    `serving ${resolve(global.dir)} at ${started.url}, pid ${child.pid}; log in ${logPath}`,
    {
      ...started,
      pid: child.pid,
      log: logPath,
      port: options.port,
    },
    global.json,
  );
}

/** Long enough for every sandbox to be put to sleep. */
const STOP_LIMIT_MS = 300_000;

async function stop(global: GlobalOptions): Promise<void> {
  const running = await runningServer(global.dir);
  if (running === null) {
    printResult(`no server runs on ${resolve(global.dir)}`, { stopped: false }, global.json);
    return;
  }
  process.kill(running.pid, "SIGTERM");
  const deadline = Date.now() + STOP_LIMIT_MS;
  // A process that is not a child of ours reports its end in no other way.
  while ((await runningServer(global.dir)) !== null) {
    if (Date.now() > deadline)
      throw new SandboxError({
        code: "server_running",
        message: `the server (pid ${running.pid}) did not end within ${STOP_LIMIT_MS / 1000} s; its log is ${resolve(global.dir, "dev.log")}`,
        details: { pid: running.pid },
        status: 504,
        retryable: true,
      });
    await new Promise((done) => setTimeout(done, 50));
  }
  await forgetServer(global.dir);
  printResult(`the server on ${resolve(global.dir)} has ended`, { stopped: true }, global.json);
}
