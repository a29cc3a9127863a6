/**
 * Previews: the SDK's `SandboxTunnelsAPI`, where a quick tunnel is a server on the host's loopback that leads to a port of
 * the container. Named tunnels are Cloudflare's and need its network.
 */
import { createServer, type Server, type Socket } from "node:net";
import { RpcTarget } from "capnweb";
import { join } from "../http-forward.ts";
import type { RunningContainer } from "../running-container.ts";
import { AgentError } from "./agent-client.ts";

interface Run {
  tunnelId: string;
  runId: string;
  port: number;
  url: string;
  hostname: string;
  startedAt: string;
  server: Server;
  sockets: Set<Socket>;
}

/** The tunnels of one container, whichever session asked for them. */
export class TunnelTable {
  readonly #container: RunningContainer;
  readonly #runs = new Map<string, Run>();

  constructor(container: RunningContainer) {
    this.#container = container;
  }

  get(tunnelId: string): Run | null {
    return this.#runs.get(tunnelId) ?? null;
  }

  list(): Run[] {
    return [...this.#runs.values()];
  }

  async open(tunnelId: string, runId: string, port: number): Promise<Run> {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
      socket.on("error", () => socket.destroy());
      this.#container.connect(port).then(
        (peer) => join(socket, peer),
        () => socket.destroy(),
      );
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("the preview has no address");
    const hostname = `127.0.0.1:${address.port}`;
    const startedAt = new Date().toISOString();
    const run = { tunnelId, runId, port, url: `http://${hostname}`, hostname, startedAt, server, sockets };
    this.#runs.set(tunnelId, run);
    return run;
  }

  close(tunnelId: string): void {
    const run = this.#runs.get(tunnelId);
    this.#runs.delete(tunnelId);
    run?.server.close();
    for (const socket of run?.sockets ?? []) socket.destroy();
  }

  closeAll(): void {
    for (const tunnelId of [...this.#runs.keys()]) this.close(tunnelId);
  }
}

interface EnsureRequest {
  tunnelId: string;
  runId: string;
  mode: string;
  port: number;
}

export class Tunnels extends RpcTarget {
  readonly #table: TunnelTable;
  constructor(table: TunnelTable) {
    super();
    this.#table = table;
  }

  async runQuickTunnel(id: string, port: number) {
    if (this.#table.get(id) !== null) {
      throw new AgentError("TUNNEL_ALREADY_RUNNING", `tunnel ${id} is running already`, { id });
    }
    return infoOf(await this.#table.open(id, id, port));
  }

  runNamedTunnel(_id: string, _token: string, _port: number): never {
    throw namedTunnel();
  }

  destroyTunnel(id: string) {
    if (this.#table.get(id) === null)
      throw new AgentError("TUNNEL_NOT_FOUND", `tunnel ${id} is not running`, { id });
    this.#table.close(id);
    return { success: true, id };
  }

  listTunnels() {
    return this.#table.list().map(infoOf);
  }

  async ensureTunnelRun({ tunnelId, runId, mode, port }: EnsureRequest) {
    if (mode !== "quick") throw namedTunnel();
    const known = this.#table.get(tunnelId);
    if (known === null) {
      // The SDK has one run a port. Where it asks for another, its record of the older one is gone: a new session counts as
      // another runtime for it, though the container is the same.
      for (const older of this.#table.list()) if (older.port === port) this.#table.close(older.tunnelId);
      return { run: snapshotOf(await this.#table.open(tunnelId, runId, port)), started: true };
    }
    if (known.runId !== runId || known.port !== port) {
      throw new AgentError("TUNNEL_RUN_CONFLICT", `tunnel ${tunnelId} serves port ${known.port} already`, {
        tunnelId,
        port: known.port,
      });
    }
    return { run: snapshotOf(known), started: false };
  }

  stopTunnelRun({ tunnelId, runId }: { tunnelId: string; runId: string }) {
    if (this.#table.get(tunnelId)?.runId !== runId) return { stopped: false };
    this.#table.close(tunnelId);
    return { stopped: true };
  }
}

function namedTunnel(): AgentError {
  return new AgentError(
    "VALIDATION_FAILED",
    "named tunnels need Cloudflare's network; on this engine tunnels.get(port) without a name gives a loopback URL",
    {},
  );
}

function infoOf(run: Run) {
  return { id: run.tunnelId, port: run.port, url: run.url, hostname: run.hostname, createdAt: run.startedAt };
}

function snapshotOf({ tunnelId, runId, port, url, hostname, startedAt }: Run) {
  return { tunnelId, runId, mode: "quick", port, url, hostname, startedAt };
}
