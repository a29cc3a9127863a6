/** `itx sandboxes`: the life of a sandbox from a terminal. */
import { Command } from "commander";
import type { CreateInput, SandboxHandle } from "../node/itx.ts";
import { followEvents, printEvent } from "./events.ts";
import { execCommand } from "./exec.ts";
import { wholeNumber } from "./input.ts";
import { printJson, printResult, printRows } from "./output.ts";
import { shellCommand } from "./shell.ts";
import { withItx } from "./target.ts";

/** `main` and `/sandboxes/main` are the same to a person; the core judges the path itself. */
export const sandboxPath = (name: string) => (name.startsWith("/") ? name : `/sandboxes/${name}`);

interface CreateFlags {
  type?: string;
  sleepAfter?: string;
  keepAlive?: boolean;
  env?: string[];
}

export function sandboxesCommand(): Command {
  const sandboxes = new Command("sandboxes")
    // What follows exec is the command's own, options and all.
    .enablePositionalOptions()
    .alias("sb")
    .description("create, use, sleep, wake and destroy sandboxes");
  sandboxes.addCommand(listCommand());
  sandboxes.addCommand(createCommand());
  sandboxes.addCommand(execCommand());
  sandboxes.addCommand(shellCommand());
  sandboxes.addCommand(logsCommand());
  sandboxes.addCommand(eventsCommand());
  sandboxes.addCommand(
    verb("sleep", "snapshot /workspace and let the container go", (s) => s.sleep(), "asleep"),
  );
  sandboxes.addCommand(verb("start", "boot now, the newest snapshot restored", (s) => s.start(), "running"));
  sandboxes.addCommand(verb("restart", "a new container, /workspace kept", (s) => s.restart(), "restarted"));
  sandboxes.addCommand(
    verb("destroy", "end it for good; the name is retired", (s) => s.destroy(), "destroyed"),
  );
  return sandboxes;
}

function verb(
  name: string,
  description: string,
  call: (sandbox: SandboxHandle) => Promise<void>,
  done: string,
): Command {
  return new Command(name)
    .description(description)
    .argument("<name>", "the sandbox's name or path")
    .action(async (target: string, _options: unknown, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const path = sandboxPath(target);
        await call(itx.sandboxes.get(path));
        printResult(`${path} is ${done}`, { path, status: done }, json);
      }),
    );
}

function listCommand(): Command {
  return new Command("list")
    .description("every sandbox of the project, destroyed ones too")
    .option("--status <status>", "only these: claimed, created, running, stopped, destroyed")
    .option("--type <type>", "only this instance type")
    .action(async (options: { status?: string; type?: string }, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const rows = [];
        let cursor: string | undefined;
        do {
          const page = await itx.sandboxes.list({
            ...(cursor === undefined ? {} : { cursor }),
            ...(options.status === undefined ? {} : { status: options.status }),
            ...(options.type === undefined ? {} : { instanceType: options.type }),
          });
          rows.push(...page.sandboxes);
          cursor = page.cursor ?? undefined;
        } while (cursor !== undefined);
        printRows(
          ["PATH", "TYPE", "STATUS", "CREATED"],
          rows.map((row) => [row.path, row.instanceType, row.status, row.createdAt]),
          rows,
          json,
        );
      }),
    );
}

function createCommand(): Command {
  return new Command("create")
    .description("create a sandbox; an existing or destroyed name is an error")
    .argument("<name>", "the sandbox's name or path")
    .option("--type <type>", "the instance type: lite, basic, standard-1 to standard-4")
    .option("--sleep-after <time>", "idle time before it sleeps, such as 10m")
    .option("--keep-alive", "never sleep on its own")
    .option("--env <name=value...>", 'a variable of every command; secrets as getSecret("/secrets/…")')
    .action(async (name: string, flags: CreateFlags, command: Command) => {
      const input: CreateInput = {
        ...(flags.type === undefined ? {} : { instanceType: flags.type }),
        ...(flags.sleepAfter === undefined ? {} : { sleepAfter: flags.sleepAfter }),
        ...(flags.keepAlive === undefined ? {} : { keepAlive: flags.keepAlive }),
        ...(flags.env === undefined ? {} : { env: variables(flags.env, command) }),
      };
      await withItx(command, async (itx, { json }) => {
        const path = sandboxPath(name);
        await itx.sandboxes.get(path).create(input);
        printResult(`${path} created`, { path, ...input }, json);
      });
    });
}

export function variables(values: string[], command: Command): Record<string, string> {
  return Object.fromEntries(
    values.map((value) => {
      const equals = value.indexOf("=");
      if (equals < 1) command.error(`error: --env wants name=value, got ${JSON.stringify(value)}`);
      return [value.slice(0, equals), value.slice(equals + 1)];
    }),
  );
}

function logsCommand(): Command {
  return new Command("logs")
    .description("background processes, or the output of one")
    .argument("<name>", "the sandbox's name or path")
    .argument("[process]", "the process's id")
    .action(async (name: string, id: string | undefined, _options: unknown, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const sandbox = itx.sandboxes.get(sandboxPath(name));
        if (id === undefined) {
          const processes = (await sandbox.listProcesses()).map(({ id, pid, status, command }) => ({
            id,
            pid: pid ?? null,
            status,
            command,
          }));
          printRows(
            ["ID", "PID", "STATUS", "COMMAND"],
            processes.map((p) => [p.id, String(p.pid ?? ""), p.status, p.command]),
            processes,
            json,
          );
          return;
        }
        const logs = await sandbox.getProcessLogs(id);
        if (json === true) printJson(logs);
        else {
          process.stdout.write(logs.stdout);
          process.stderr.write(logs.stderr);
        }
      }),
    );
}

function eventsCommand(): Command {
  return new Command("events")
    .description("the sandbox's own event stream")
    .argument("<name>", "the sandbox's name or path")
    .option("--follow", "go on with every new event")
    .option("--after <offset>", "start after this event", wholeNumber(0), 0)
    .action(async (name: string, options: { follow?: boolean; after: number }, command: Command) =>
      withItx(command, async (itx, { json }) => {
        const path = sandboxPath(name);
        // A sandbox that was never created is an error here, though reading its stream would just give nothing.
        await itx.sandboxes.get(path).processor.snapshot();
        const stream = itx.streams.get(path);
        if (options.follow === true) return followEvents(stream, options.after, json);
        for (let after = options.after; ; ) {
          const { events } = await stream.read({ after });
          const last = events.at(-1);
          if (last === undefined) return;
          for (const event of events) printEvent(event, json);
          after = last.offset;
        }
      }),
    );
}
