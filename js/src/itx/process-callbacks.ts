/**
 * The callbacks of `startProcess`. The SDK would call them from the object long after the call that brought them has ended, and with
 * it every callback that crossed an RPC boundary; so they are taken out here, and called while the client's connection lasts.
 */
import { parseSSEStream } from "@cloudflare/sandbox";

type Callback = (...values: unknown[]) => unknown;

interface ProcessCallbacks {
  onStart?: Callback;
  onOutput?: Callback;
  onExit?: Callback;
  onError?: Callback;
}

interface LogEvent {
  type: string;
  data?: string;
  exitCode?: number;
}

export interface DetachedCallbacks {
  /** The arguments without callbacks. */
  values: unknown[];
  callbacks: ProcessCallbacks;
}

const NAMES = ["onStart", "onOutput", "onExit", "onError"] as const;

/** Takes the callbacks out of `startProcess(command, options)`; `values` have been made to outlive the call. */
export function detachCallbacks(values: readonly unknown[]): DetachedCallbacks {
  const [command, options, ...rest] = values;
  if (typeof options !== "object" || options === null) return { values: [...values], callbacks: {} };
  const callbacks: ProcessCallbacks = {};
  const remaining: Record<string, unknown> = { ...options };
  for (const name of NAMES) {
    const callback = remaining[name];
    if (!isCallback(callback)) continue;
    callbacks[name] = callback;
    delete remaining[name];
  }
  return { values: [command, remaining, ...rest], callbacks };
}

/** Calls them as the process goes on. What a callback throws is its own affair. */
export async function runCallbacks(
  callbacks: ProcessCallbacks,
  process: unknown,
  logs: (processId: string) => Promise<unknown>,
): Promise<void> {
  const { onStart, onOutput, onExit, onError } = callbacks;
  await quietly(onStart, process);
  if (onOutput === undefined && onExit === undefined) return;
  try {
    const stream = await logs(processId(process));
    if (!(stream instanceof ReadableStream)) throw new TypeError("the process has no log stream");
    for await (const event of parseSSEStream<LogEvent>(stream)) {
      if (event.type === "stdout" || event.type === "stderr")
        await quietly(onOutput, event.type, event.data ?? "");
      if (event.type !== "exit" && event.type !== "complete") continue;
      await quietly(onExit, event.exitCode ?? null);
      return;
    }
    throw new Error("the process's output ended before its exit was reported");
  } catch (error) {
    await quietly(onError, error);
  }
}

async function quietly(callback: Callback | undefined, ...values: unknown[]): Promise<void> {
  try {
    await callback?.(...values);
  } catch {
    // The client may be gone, or its code at fault; the process goes on.
  }
}

function processId(process: unknown): string {
  const id = typeof process === "object" && process !== null && "id" in process ? process.id : undefined;
  if (typeof id !== "string") throw new TypeError("startProcess gave no process id");
  return id;
}

function isCallback(value: unknown): value is Callback {
  return typeof value === "function";
}
