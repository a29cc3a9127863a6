/** Code contexts over capnweb: the SDK's `SandboxInterpreterAPI`; results reach the caller's callbacks as they come. */
import { RpcTarget } from "capnweb";
import type { AgentClient } from "./agent-client.ts";

interface ContextOptions {
  language?: string;
  cwd?: string;
  envVars?: Record<string, string | undefined>;
}

interface CodeContext {
  id: string;
  language: string;
  cwd: string;
  createdAt: Date;
  lastUsed: Date;
}

interface Callbacks {
  onStdout?: (output: { text: string; timestamp: number }) => unknown;
  onStderr?: (output: { text: string; timestamp: number }) => unknown;
  onResult?: (result: Record<string, unknown>) => unknown;
  onError?: (error: { name: string; message: string; traceback: string[] }) => unknown;
}

export class Interpreter extends RpcTarget {
  readonly #agent: AgentClient;
  constructor(agent: AgentClient) {
    super();
    this.#agent = agent;
  }

  async createCodeContext(options: ContextOptions = {}): Promise<CodeContext> {
    const made = await this.#agent.post<{
      contextId: string;
      language: string;
      cwd?: string;
      timestamp: string;
    }>("/api/contexts", {
      language: options.language ?? "python",
      cwd: options.cwd ?? "/workspace",
      env_vars: options.envVars,
    });
    return contextOf({ id: made.contextId, language: made.language, cwd: made.cwd }, made.timestamp);
  }

  async listCodeContexts(): Promise<CodeContext[]> {
    const listed = await this.#agent.get<{
      contexts: { id: string; language: string; cwd?: string }[];
      timestamp: string;
    }>("/api/contexts");
    return listed.contexts.map((context) => contextOf(context, listed.timestamp));
  }

  async deleteCodeContext(contextId: string): Promise<void> {
    await this.#agent.delete(`/api/contexts/${encodeURIComponent(contextId)}`);
  }

  async streamCode(contextId: string, code: string, language?: string): Promise<ReadableStream<Uint8Array>> {
    return (await this.#execute(contextId, code, language)).body;
  }

  async runCodeStream(
    contextId: string | undefined,
    code: string,
    language: string | undefined,
    callbacks: Callbacks,
    timeoutMs?: number,
  ): Promise<void> {
    const { body } = await this.#execute(contextId, code, language, timeoutMs);
    let rest = "";
    for await (const text of body.pipeThrough(new TextDecoderStream())) {
      const lines = `${rest}${text}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) await deliver(line, callbacks);
    }
    await deliver(rest, callbacks);
  }

  #execute(contextId: string | undefined, code: string, language: string | undefined, timeoutMs?: number) {
    return this.#agent.stream("POST", "/api/execute/code", {
      context_id: contextId,
      code,
      language,
      ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }),
    });
  }
}

function contextOf(
  context: { id: string; language: string; cwd?: string | undefined },
  timestamp: string,
): CodeContext {
  return {
    id: context.id,
    language: context.language,
    cwd: context.cwd ?? "/workspace",
    createdAt: new Date(timestamp),
    lastUsed: new Date(timestamp),
  };
}

/** One line of the event stream to the callback that is for it; the rest of an execution carries no news. */
async function deliver(line: string, callbacks: Callbacks): Promise<void> {
  if (!line.startsWith("data: ")) return;
  const event = JSON.parse(line.slice(6)) as Record<string, unknown>;
  const text = (name: string, otherwise: string) => {
    const value = event[name];
    return typeof value === "string" ? value : otherwise;
  };
  const timestamp = typeof event.timestamp === "number" ? event.timestamp : Date.now();
  switch (event.type) {
    case "stdout":
      await callbacks.onStdout?.({ text: text("text", ""), timestamp });
      break;
    case "stderr":
      await callbacks.onStderr?.({ text: text("text", ""), timestamp });
      break;
    case "result":
      await callbacks.onResult?.(event);
      break;
    case "error":
      await callbacks.onError?.({
        name: text("ename", "Error"),
        message: text("evalue", "Unknown error"),
        traceback: Array.isArray(event.traceback) ? event.traceback.map(String) : [],
      });
      break;
    default:
  }
}
