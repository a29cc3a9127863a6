import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";

export interface RawWebSocket {
  send(data: string | Buffer): void;
  next(): Promise<Buffer>;
  close(): void;
}

/** A WebSocket over a socket that is connected already: as much of RFC 6455 as these tests need. */
export async function openWebSocket(socket: Socket, path: string): Promise<RawWebSocket> {
  const key = randomBytes(16).toString("base64");
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: sandbox\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  let pending = Buffer.alloc(0);
  const messages: Buffer[] = [];
  const waiting: ((message: Buffer) => void)[] = [];
  let fragments: Buffer[] = [];
  let upgraded: ((head: string) => void) | undefined;
  const head = new Promise<string>((resolve) => {
    upgraded = resolve;
  });

  const takeFrame = (): boolean => {
    if (pending.length < 2) return false;
    const first = pending.readUInt8(0);
    let length = pending.readUInt8(1) & 127;
    let at = 2;
    if (length === 126) {
      if (pending.length < 4) return false;
      length = pending.readUInt16BE(2);
      at = 4;
    } else if (length === 127) {
      if (pending.length < 10) return false;
      length = Number(pending.readBigUInt64BE(2));
      at = 10;
    }
    if (pending.length < at + length) return false;
    const data = pending.subarray(at, at + length);
    pending = pending.subarray(at + length);
    if ((first & 15) > 2) return true;
    fragments.push(data);
    if ((first & 128) === 0) return true;
    const message = Buffer.concat(fragments);
    fragments = [];
    const receiver = waiting.shift();
    if (receiver) receiver(message);
    else messages.push(message);
    return true;
  };

  socket.on("data", (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    if (upgraded) {
      const end = pending.indexOf("\r\n\r\n");
      if (end < 0) return;
      upgraded(pending.subarray(0, end).toString());
      upgraded = undefined;
      pending = pending.subarray(end + 4);
    }
    while (takeFrame());
  });
  const answer = await head;
  if (!answer.startsWith("HTTP/1.1 101")) throw new Error(answer);

  const send = (data: Buffer, opcode: number): void => {
    const frame = Buffer.alloc(14);
    frame.writeUInt8(128 | opcode, 0);
    let at = 2;
    if (data.length < 126) frame.writeUInt8(128 | data.length, 1);
    else if (data.length < 65536) {
      frame.writeUInt8(128 | 126, 1);
      frame.writeUInt16BE(data.length, 2);
      at = 4;
    } else {
      frame.writeUInt8(128 | 127, 1);
      frame.writeBigUInt64BE(BigInt(data.length), 2);
      at = 10;
    }
    // A mask of zeros is a mask: the bytes go as they are.
    socket.write(Buffer.concat([frame.subarray(0, at), Buffer.alloc(4), data]));
  };
  return {
    send: (data) => (typeof data === "string" ? send(Buffer.from(data), 1) : send(data, 2)),
    next: () => {
      const message = messages.shift();
      if (message) return Promise.resolve(message);
      return new Promise((resolve) => waiting.push(resolve));
    },
    close: () => {
      send(Buffer.from([3, 232]), 8);
      socket.end();
    },
  };
}
