/** Commands with a timeout: the deadline is kept by the command's own shell, and the SDK waits for as long as that takes. */
import { loadCore } from "#core";
import { withDeadline } from "./deadline.ts";
import { check, enter, type Guarded, isInside } from "./guard.ts";

/** What the SDK's exec methods share. */
interface ExecSettings {
  timeout?: number;
  origin?: string;
  onComplete?: (result: object) => void;
}

/**
 * The shell keeps a deadline only while it can start the programs that it needs for it. Beyond this, the container's server ends the
 * command itself: among a thousand processes there may be no turn on the processor and no room for one more.
 */
const BACKSTOP_MS = 10_000;
/** What a timer can hold, and the longest timeout that a command may have. */
const MAX_TIMER_MS = 2_147_483_647;

type ExecMethod = (this: Guarded, command: string, ...rest: unknown[]) => Promise<unknown>;

/** Each method of the SDK that runs a command, and where its options stand behind the command. */
const methods = {
  exec: { options: 0, timed: false },
  execStream: { options: 0, timed: true },
  execWithSession: { options: 1, timed: true },
  execStreamWithSession: { options: 1, timed: true },
} as const;

/**
 * Puts the SDK's exec methods on `target`, with their arguments checked before anything boots. Those that hand the command to the
 * container wrap it; `exec` gets there through `execWithSession`.
 */
export function installDeadlines(target: object, base: object): void {
  for (const [name, { options, timed }] of Object.entries(methods)) {
    const method: unknown = Reflect.get(base, name);
    if (!isExecMethod(method)) throw new TypeError(`the SDK has no method ${name}`);
    const run: ExecMethod = timed
      ? function (command, ...rest) {
          return runTimed(this, method, command, rest, options);
        }
      : method;
    Object.defineProperty(target, name, {
      value: guarded(name, run, options),
      writable: true,
      configurable: true,
    });
  }
}

function guarded(name: string, run: ExecMethod, position: number): ExecMethod {
  return async function (command, ...rest) {
    if (isInside(this)) return Reflect.apply(run, this, [command, ...rest]);
    this[check]("live");
    const { timeout } = settingsOf(rest[position]);
    (await loadCore()).validateExec({ command, ...(timeout !== undefined && { timeout }) });
    const call = () => Reflect.apply(run, this, [command, ...rest]);
    return this[enter](name, name === "exec" ? () => orExit(command, call) : call);
  };
}

/**
 * A command at the top level that ends its shell (`exit 3`) has that exit code; the next one gets a fresh shell. In a session that
 * somebody made, the loss of its state is an error.
 */
async function orExit(command: string, call: () => Promise<unknown>): Promise<unknown> {
  const started = Date.now();
  try {
    return await call();
  } catch (error) {
    const end = endOfShell(error);
    if (end === null) throw error;
    return {
      success: end.exitCode === 0,
      exitCode: end.exitCode,
      stdout: end.stdout,
      stderr: end.stderr,
      command,
      duration: Date.now() - started,
      timestamp: new Date(started).toISOString(),
    };
  }
}

interface EndOfShell {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** What the SDK's error tells of a shell that ended by itself; null for every other error. */
function endOfShell(error: unknown): EndOfShell | null {
  if (!(error instanceof Error) || !("code" in error) || error.code !== "SESSION_TERMINATED") return null;
  const context: unknown = "context" in error ? error.context : undefined;
  if (typeof context !== "object" || context === null || !("exitCode" in context)) return null;
  if (typeof context.exitCode !== "number") return null;
  return { exitCode: context.exitCode, stdout: textOf(context, "stdout"), stderr: textOf(context, "stderr") };
}

function textOf(context: object, key: string): string {
  const value: unknown = Reflect.get(context, key);
  return typeof value === "string" ? value : "";
}

async function runTimed(
  target: Guarded,
  method: ExecMethod,
  command: string,
  rest: unknown[],
  position: number,
): Promise<unknown> {
  const { timeout, ...settings } = settingsOf(rest[position]);
  if (timeout === undefined || settings.origin === "internal") {
    return Reflect.apply(method, target, [command, ...rest]);
  }
  const { onComplete } = settings;
  const passed = [...rest];
  passed[position] = {
    ...settings,
    timeout: Math.min(timeout + BACKSTOP_MS, MAX_TIMER_MS),
    ...(onComplete !== undefined && { onComplete: (result: object) => onComplete({ ...result, command }) }),
  };
  const text = withDeadline(command, timeout, crypto.randomUUID());
  const result: unknown = await Reflect.apply(method, target, [text, ...passed]);
  return isResult(result) ? { ...result, command } : result;
}

function settingsOf(value: unknown): ExecSettings {
  return typeof value === "object" && value !== null ? value : {};
}

function isResult(value: unknown): value is { command: string } {
  return typeof value === "object" && value !== null && "command" in value && "exitCode" in value;
}

function isExecMethod(value: unknown): value is ExecMethod {
  return typeof value === "function";
}
