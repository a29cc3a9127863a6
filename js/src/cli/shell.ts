/** `itx sandboxes shell`: a real terminal over one WebSocket. */
import { Command } from "commander";
import { WebSocket } from "ws";
import { SandboxError } from "../core/error.ts";
import { ExitStatus } from "./errors.ts";
import { sandboxPath } from "./sandboxes.ts";
import { globals, resolveTarget } from "./target.ts";

export function shellCommand(): Command {
  return new Command("shell")
    .description("an interactive terminal in the sandbox; the exit code is the shell's")
    .argument("<name>", "the sandbox's name or path")
    .action(async (name: string, _options: unknown, command: Command) => {
      const { url, token, project } = await resolveTarget(globals(command));
      const address = new URL("/terminal", url);
      address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
      address.searchParams.set("project", project);
      address.searchParams.set("path", sandboxPath(name));
      address.searchParams.set("cols", String(process.stdout.columns || 80));
      address.searchParams.set("rows", String(process.stdout.rows || 24));
      throw new ExitStatus(
        await attach(new WebSocket(address.href, { headers: { authorization: `Bearer ${token}` } })),
      );
    });
}

/** Joins this terminal to the socket until the shell ends; gives the shell's exit code. */
async function attach(socket: WebSocket): Promise<number> {
  const { stdin, stdout } = process;
  const raw = (on: boolean) => stdin.isTTY === true && stdin.setRawMode(on);
  const resize = () => {
    const size = { type: "resize", cols: stdout.columns || 80, rows: stdout.rows || 24 };
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(size));
  };
  const input = (data: Buffer) => socket.readyState === WebSocket.OPEN && socket.send(data);
  try {
    return await new Promise<number>((resolve, reject) => {
      socket.once("open", () => {
        raw(true);
        stdin.on("data", input);
        stdin.once("end", () => input(Buffer.from([4])));
        stdout.on("resize", resize);
      });
      socket.on("message", (data: Buffer, binary) => {
        if (binary) stdout.write(data);
        else control(data.toString("utf8"), resolve, reject);
      });
      socket.once("unexpected-response", (_request, response) => {
        let body = "";
        response.on("data", (chunk: Buffer) => (body += chunk.toString("utf8")));
        response.once("end", () => reject(refusal(response.statusCode ?? 502, body)));
      });
      socket.once("error", reject);
      socket.once("close", (code) => (code === 1000 ? resolve(0) : reject(cut(code))));
    });
  } finally {
    raw(false);
    stdin.off("data", input);
    stdin.pause();
    stdout.off("resize", resize);
    socket.close();
  }
}

function control(text: string, resolve: (status: number) => void, reject: (error: Error) => void): void {
  const message: { type: string; code?: number; message?: string } = JSON.parse(text);
  if (message.type === "exit") resolve(message.code ?? 0);
  else if (message.type === "error") reject(new Error(message.message ?? "the terminal failed"));
}

function refusal(status: number, body: string): Error {
  try {
    const { error } = JSON.parse(body);
    return new SandboxError({
      code: error.code,
      message: error.message,
      details: {},
      status,
      retryable: false,
    });
  } catch {
    return new Error(`the terminal was refused with status ${status}`);
  }
}

const cut = (code: number) =>
  new SandboxError({
    code: "connection_lost",
    message: `the terminal's connection was lost (close code ${code}); the sandbox may have gone to sleep or the server stopped`,
    details: { closeCode: code },
    status: 502,
    retryable: true,
  });
