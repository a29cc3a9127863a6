/**
 * Bodies pass through buffers that are used again. A buffer for each piece is garbage outside the heap, for which the collector marks the
 * whole heap of the thread every few megabytes: that costs as much time as all the rest of the way.
 */
import { Agent, type ClientRequestArgs, type IncomingMessage, type OutgoingMessage } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { type OnReadOpts, Socket } from "node:net";
import type { Duplex } from "node:stream";

const bufferBytes = 64 * 1024;
/** What a burst leaves beyond these is let go. */
const keptWriteBuffers = 32;
/** One slot on the heap for so many bytes outside it; see {@link fillYoungGeneration}. */
const bytesPerSlot = 32;

/** The message that is read from a connection. */
const messages = new WeakMap<object, IncomingMessage>();

/** What is read from one connection; where some of it is still to be taken, its buffer is left to it and a new one follows. */
class ReusedReads implements OnReadOpts {
  socket: Socket | null = null;
  #buffer = Buffer.allocUnsafeSlow(bufferBytes);
  #held = false;

  readonly buffer = () => {
    if (this.#held) this.#buffer = Buffer.allocUnsafeSlow(bufferBytes);
    this.#held = false;
    return this.#buffer;
  };

  readonly callback = (bytes: number) => {
    const { socket } = this;
    if (socket === null) return false;
    const more = socket.push(this.#buffer.subarray(0, bytes));
    const message = messages.get(socket);
    this.#held = message === undefined || message.readableLength > 0 || socket.readableLength > 0;
    return more;
  };
}

type Created = (error: Error | null, stream: Duplex) => void;
type Create = (options: ClientRequestArgs, created?: Created) => Duplex | null | undefined;

function createReusing(create: Create, options: ClientRequestArgs, created?: Created) {
  const onread = new ReusedReads();
  const connection = create({ ...options, ...{ onread } }, created);
  if (connection instanceof Socket) onread.socket = connection;
  return connection;
}

/** For requests whose answers are taken by {@link pour}. Not for upgrades, which keep what they have read. */
export class ReusingAgent extends Agent {
  override createConnection(options: ClientRequestArgs, created?: Created): Duplex | null | undefined {
    return createReusing((...args) => super.createConnection(...args), options, created);
  }
}

/** {@link ReusingAgent} for TLS. */
export class SecureReusingAgent extends SecureAgent {
  override createConnection(options: ClientRequestArgs, created?: Created): Duplex | null | undefined {
    return createReusing((...args) => super.createConnection(...args), options, created);
  }
}

const writeBuffers: Buffer[] = [];

/**
 * The body of a message goes to `target`, and what comes in one turn of the loop leaves in one write: the runtime hands bodies over in
 * pieces of 4 KB and TLS in 16 KB, and each write costs more than its bytes do. An end before its time of either ends the other.
 */
export function pour(message: IncomingMessage, target: OutgoingMessage): void {
  endTogether(message, target);
  messages.set(message.socket, message);
  let buffer: Buffer | null = null;
  let filled = 0;
  let scheduled = false;
  let watched: Duplex | null = null;
  const resume = () => message.resume();
  const flush = () => {
    const written = buffer;
    if (written === null || target.destroyed) return;
    buffer = null;
    const more = target.write(written.subarray(0, filled), (error) => {
      // After a failure the connection may still hold it.
      if (!error && writeBuffers.length < keptWriteBuffers) writeBuffers.push(written);
    });
    filled = 0;
    if (more) return;
    message.pause();
    // A request whose answer has ended, and an answer to an upgrade, are not told of their connection's drain.
    if (watched !== null || target.socket === null) return;
    watched = target.socket;
    watched.on("drain", resume);
  };
  const flushLater = () => {
    scheduled = false;
    flush();
  };
  message.on("data", (piece: Buffer) => {
    fillYoungGeneration(piece.length);
    for (let taken = 0; taken < piece.length; ) {
      buffer ??= writeBuffers.pop() ?? Buffer.allocUnsafeSlow(bufferBytes);
      const copied = piece.copy(buffer, filled, taken);
      taken += copied;
      filled += copied;
      if (filled === buffer.length) flush();
      if (target.destroyed) return;
    }
    if (scheduled) return;
    scheduled = true;
    setImmediate(flushLater);
  });
  message.on("end", () => {
    flush();
    target.end();
  });
  target.on("drain", resume);
  target.on("close", () => watched?.off("drain", resume));
}

function endTogether(message: IncomingMessage, target: OutgoingMessage): void {
  message.on("error", () => target.destroy());
  message.on("close", () => {
    if (!message.complete) target.destroy();
  });
  target.on("close", () => {
    if (!target.writableFinished) message.destroy();
  });
}

/** Kept, so that it is made. */
const young: { filler: unknown[] } = { filler: [] };

/**
 * Node's parser hands each piece over as a copy outside the heap. Such copies are freed when the young generation is full, which counts
 * only what is on the heap; with too little there, the limit that marks the whole heap is reached before.
 */
function fillYoungGeneration(bytesOutside: number): void {
  young.filler = new Array(Math.ceil(bytesOutside / bytesPerSlot));
}
