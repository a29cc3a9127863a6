/**
 * The thread that carries what leaves the containers: TLS, certificates and HTTP of both sides of the door. Streams make garbage outside
 * the heap, for which the collector marks the whole heap of its thread again and again: this one's is small, the server's is not. And a
 * download does not hold up the calls of other sandboxes.
 */
import "./websocket-global.ts";
import { type MessagePort, workerData } from "node:worker_threads";
import { newMessagePortRpcSession, RpcTarget } from "capnweb";
import { loadCore } from "#core";
import { CertificateAuthority, generateLeafKeys } from "./certificates.ts";
import { EgressListener, type EgressOptions } from "./egress.ts";
import { Outbound, type OutboundOptions } from "./outbound.ts";
import { type Intercept, interceptKey } from "./protocol.ts";
import { ReusingAgent } from "./reused-buffers.ts";
import type { WorkerAddress, WorkerCalls } from "./worker-calls.ts";

/** What the thread is started with. */
export interface EgressThreadData {
  port: MessagePort;
  outbound: Omit<OutboundOptions, "classify">;
  outboundSocket: string;
}

/** A container as far as its egress is concerned. */
export interface EgressContainer {
  id: string;
  enableInternet: boolean;
  intercepts: Intercept[];
}

/** Shorter than the 5 s after which workerd closes an idle connection, so that none is used as it closes. */
const workerIdleMs = 4_000;

/** What the server asks of this thread. */
export class EgressThread extends RpcTarget {
  readonly #outbound: Outbound;
  readonly #agent = new ReusingAgent({ keepAlive: true, timeout: workerIdleMs });
  readonly #secret: string;
  readonly #port: MessagePort;
  readonly #listeners = new Set<EgressListener>();
  readonly #leafKeys = generateLeafKeys();
  #worker: WorkerAddress | null = null;

  constructor(outbound: Outbound, secret: string, port: MessagePort) {
    super();
    this.#outbound = outbound;
    this.#secret = secret;
    this.#port = port;
  }

  /** Resolves when the thread is there and serves what the Worker fetches. */
  ready(): void {}

  connectWorker(worker: WorkerAddress): void {
    this.#worker = worker;
  }

  /** Makes the authority of one container, whichever it will be. */
  async prepare(): Promise<EgressPreparation> {
    const authority = await CertificateAuthority.create(await this.#leafKeys);
    const handle = new EgressHandle(authority, this.#listeners, {
      outbound: this.#outbound,
      worker: () => this.#workerCalls(),
    });
    return { certificatePem: authority.certificatePem, handle };
  }

  /** Ends everything that keeps the thread, which then ends by itself. */
  close(): void {
    for (const listener of this.#listeners) listener.close();
    this.#outbound.close();
    this.#agent.destroy();
    setImmediate(() => this.#port.close());
  }

  #workerCalls(): WorkerCalls {
    if (this.#worker === null) throw new Error("the Worker is not running");
    return { ...this.#worker, secret: this.#secret, agent: this.#agent };
  }
}

/** What serves one container, and the certificate that it has to trust. */
export interface EgressPreparation {
  certificatePem: string;
  handle: EgressHandle;
}

export class EgressHandle extends RpcTarget {
  readonly #authority: CertificateAuthority;
  readonly #listeners: Set<EgressListener>;
  readonly #options: EgressOptions;
  readonly #intercepts = new Map<string, Intercept>();
  #listener: EgressListener | null = null;
  #closed = false;

  constructor(authority: CertificateAuthority, listeners: Set<EgressListener>, options: EgressOptions) {
    super();
    this.#authority = authority;
    this.#listeners = listeners;
    this.#options = options;
  }

  /** Serves the container's relay on the socket at `path`. */
  async listen(path: string, { id, enableInternet, intercepts }: EgressContainer): Promise<void> {
    for (const intercept of intercepts) this.intercept(intercept);
    const source = { id, enableInternet, intercepts: this.#intercepts };
    const listener = await EgressListener.listen(path, this.#authority, source, this.#options);
    if (this.#closed) return listener.close();
    this.#listener = listener;
    this.#listeners.add(listener);
  }

  intercept(intercept: Intercept): void {
    this.#intercepts.set(interceptKey(intercept), intercept);
  }

  close(): void {
    this.#closed = true;
    if (this.#listener === null) return;
    this.#listeners.delete(this.#listener);
    this.#listener.close();
  }
}

async function run({ port, outbound: options, outboundSocket }: EgressThreadData): Promise<void> {
  const core = await loadCore();
  const outbound = new Outbound({ ...options, classify: (address) => core.classifyAddress(address) });
  await outbound.listen(outboundSocket);
  // Node's ports have the methods that capnweb asks for; only the types are of two worlds.
  newMessagePortRpcSession(port as never, new EgressThread(outbound, options.secret, port));
}

await run(workerData);
