/** The `/rpc` endpoint of a container: capnweb over the WebSocket that the SDK opens to port 3000. */
import "../websocket-global.ts";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { newWebSocketRpcSession, RpcTarget } from "capnweb";
import { type WebSocket, WebSocketServer } from "ws";
import { agentPort } from "../control.ts";
import type { RunningContainer } from "../running-container.ts";
import { AgentClient, AgentError } from "./agent-client.ts";
import { Files } from "./files.ts";
import { Interpreter } from "./interpreter.ts";
import { Backup, Commands, Git, Ports, Processes, Utils, Watch } from "./targets.ts";
import { Tunnels, TunnelTable } from "./tunnels.ts";

export const rpcPath = "/rpc";

/** Files that are not streamed cross in one message, in base64. */
const maxMessageBytes = 256 * 1024 * 1024;

export class ControlSessions {
  readonly #server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: maxMessageBytes,
  });
  readonly #open = new Map<RunningContainer, { sockets: Set<WebSocket>; tunnels: TunnelTable }>();
  readonly #log: (line: string) => void;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  /** Answers the upgrade and serves the container's API on it. */
  accept(container: RunningContainer, incoming: IncomingMessage, socket: Duplex, head: Buffer): void {
    const state = this.#open.get(container) ?? { sockets: new Set(), tunnels: new TunnelTable(container) };
    this.#open.set(container, state);
    this.#server.handleUpgrade(incoming, socket, head, (webSocket) => {
      state.sockets.add(webSocket);
      webSocket.on("close", () => state.sockets.delete(webSocket));
      webSocket.on("error", (error) => this.#log(`rpc of ${container.id}: ${error.message}`));
      const agent = new AgentClient(container.agent(agentPort), () => container.ends());
      const api = new ControlApi(agent, state.tunnels, container.placed);
      // capnweb asks for the events and methods that ws has; the two differ only in types that nobody uses here.
      newWebSocketRpcSession(webSocket as never, api, {
        onSendError: (error) => {
          // What cannot be sent any more is only that the peer has gone.
          if (!(error instanceof AgentError) && webSocket.readyState === webSocket.OPEN)
            this.#log(`rpc of ${container.id}: ${error.stack ?? error.message}`);
        },
      });
    });
  }

  /** The container is gone: its sessions break off, as its own server's would. */
  end(container: RunningContainer): void {
    const state = this.#open.get(container);
    this.#open.delete(container);
    state?.tunnels.closeAll();
    for (const socket of state?.sockets ?? []) socket.terminate();
  }

  close(): void {
    for (const container of [...this.#open.keys()]) this.end(container);
    this.#server.close();
  }
}

class ControlApi extends RpcTarget {
  readonly #agent: AgentClient;
  readonly #tunnels: TunnelTable;
  readonly #placed: Map<string, string>;

  constructor(agent: AgentClient, tunnels: TunnelTable, placed: Map<string, string>) {
    super();
    this.#agent = agent;
    this.#tunnels = tunnels;
    this.#placed = placed;
  }

  get commands(): Commands {
    return new Commands(this.#agent);
  }
  get files(): Files {
    return new Files(this.#agent, this.#placed);
  }
  get processes(): Processes {
    return new Processes(this.#agent);
  }
  get ports(): Ports {
    return new Ports(this.#agent);
  }
  get git(): Git {
    return new Git(this.#agent);
  }
  get interpreter(): Interpreter {
    return new Interpreter(this.#agent);
  }
  get utils(): Utils {
    return new Utils(this.#agent);
  }
  get backup(): Backup {
    return new Backup(this.#agent);
  }
  get watch(): Watch {
    return new Watch(this.#agent);
  }
  get tunnels(): Tunnels {
    return new Tunnels(this.#tunnels);
  }
}
