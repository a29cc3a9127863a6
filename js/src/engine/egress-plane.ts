/** The server's side of the egress thread. */
import "./websocket-global.ts";
import { extname, join } from "node:path";
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { newMessagePortRpcSession, type RpcStub } from "capnweb";
import { isSandboxError, SandboxError } from "../core/error.ts";
import type { EgressContainer, EgressHandle, EgressThread, EgressThreadData } from "./egress-thread.ts";
import type { Intercept } from "./protocol.ts";
import type { WorkerAddress } from "./worker-calls.ts";

/** What leaves one container; it ends with {@link close}. */
export interface ContainerEgress {
  readonly certificatePem: string;
  /** Settles when its relay is served. */
  readonly listening: Promise<void>;
  intercept(intercept: Intercept): Promise<void>;
  close(): void;
}

/** What the next container will be served by. */
interface Preparation {
  certificatePem: string;
  handle: RpcStub<EgressHandle>;
}

/**
 * As small as it goes. Buffers that have passed are freed when the young generation is collected; a larger one lets so many of them
 * gather that the whole heap is marked instead, several times for each 100 MB.
 */
const youngGenerationMb = 1;
/** By then the start that took an authority is over, and making the next one does not slow it down. */
const calmMs = 250;
/** A name that is being resolved keeps the thread; by then it makes no key any more. */
const endMs = 2_000;

export class EgressPlane {
  /** Settles when the Worker's own requests can leave. */
  readonly ready: Promise<void>;
  readonly #thread: Worker;
  readonly #ended: Promise<void>;
  readonly #port: MessagePort;
  readonly #stub: RpcStub<EgressThread>;
  #next: Promise<Preparation> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: Omit<EgressThreadData, "port">) {
    const { port1, port2 } = new MessageChannel();
    const data: EgressThreadData = { ...options, port: port2 };
    // The same from the sources and from dist/js.
    const file = join(import.meta.dirname, `egress-thread${extname(import.meta.filename)}`);
    this.#thread = new Worker(file, {
      workerData: data,
      resourceLimits: { maxYoungGenerationSizeMb: youngGenerationMb },
      // Those of the program may speak of its own text.
      execArgv: [],
      transferList: [port2],
    });
    this.#port = port1;
    this.#stub = newMessagePortRpcSession<EgressThread>(port1 as never);
    this.#ended = new Promise((resolve) => this.#thread.once("exit", () => resolve()));
    // A fault in the thread is a fault of the process, as it would be without the thread.
    const failed = new Promise<never>((_, reject) => {
      // Errors cross threads without their class.
      this.#thread.once("error", (error) => reject(isSandboxError(error) ? new SandboxError(error) : error));
    });
    this.ready = Promise.race([this.#stub.ready(), failed]);
    this.ready.then(
      () => {
        failed.catch((error: unknown) => setImmediate(() => rethrow(error)));
        this.prepare();
      },
      () => undefined,
    );
    // What keeps a server alive is that it listens.
    this.#thread.unref();
    this.#port.unref();
  }

  connectWorker(worker: WorkerAddress): void {
    void this.#stub.connectWorker(worker);
  }

  /** Begins to serve a container's relay on the socket at `path`, under an authority of its own. */
  async listen(path: string, container: EgressContainer): Promise<ContainerEgress> {
    const { certificatePem, handle } = await this.#take();
    const listening = handle.listen(path, container);
    listening.catch(() => undefined);
    return {
      certificatePem,
      listening,
      async intercept(intercept) {
        await handle.intercept(intercept);
      },
      close: () => {
        handle.close().then(
          () => handle[Symbol.dispose](),
          // The thread is gone, and with it what it served.
          () => undefined,
        );
      },
    };
  }

  /** Makes the keys and signatures of the next container in the background. */
  prepare(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#closed) return;
    this.#next ??= this.#make();
    this.#next.catch(() => {
      this.#next = null;
    });
  }

  #take(): Promise<Preparation> {
    const next = this.#next ?? this.#make();
    this.#next = null;
    // Not while a start that came after is on its way.
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.prepare(), calmMs).unref();
    return next;
  }

  async #make(): Promise<Preparation> {
    const { certificatePem, handle } = await this.#stub.prepare();
    return { certificatePem, handle };
  }

  /** A thread that is ended from outside while it makes a key takes the whole process with it: this one ends by itself. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#thread.ref();
    // Its answer may be lost with the port.
    this.#stub.close().catch(() => undefined);
    const timer = setTimeout(() => void this.#thread.terminate(), endMs);
    await this.#ended;
    clearTimeout(timer);
    this.#port.close();
  }
}

function rethrow(error: unknown): never {
  throw error;
}
