import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, request } from "node:http";
import { type AddressInfo, createConnection } from "node:net";
import { text } from "node:stream/consumers";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pour, ReusingAgent } from "../../js/src/engine/reused-buffers.ts";

const body = randomBytes(3_000_000);
const digest = createHash("sha256").update(body).digest("hex");

const servers = new Set<ReturnType<typeof createServer>>();
const agent = new ReusingAgent({ keepAlive: true, maxSockets: 4 });
let relayPort = 0;
let originPort = 0;

async function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  servers.add(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Writes the body in pieces of many sizes, with its length told or in chunks. */
const origin: RequestListener = async (incoming, response) => {
  if (incoming.method === "PUT") {
    response.end(JSON.stringify(await digestOf(incoming)));
    return;
  }
  if (incoming.url === "/length") response.setHeader("content-length", body.length);
  if (incoming.url === "/cut") response.setHeader("content-length", body.length + 1);
  for (let start = 0, piece = 1; start < body.length; start += piece, piece = (piece * 3) % 150_001) {
    if (!response.write(body.subarray(start, start + piece))) await once(response, "drain");
    else if (piece % 2 === 0) await turn();
  }
  if (incoming.url === "/cut") response.destroy();
  else response.end();
};

beforeAll(async () => {
  originPort = await listen(origin);
  relayPort = await listen((incoming, response) => {
    const { method, url: path, headers } = incoming;
    const framing = headers["content-length"] !== undefined && {
      "content-length": headers["content-length"],
    };
    const outgoing = request({
      host: "127.0.0.1",
      port: originPort,
      method,
      path,
      agent,
      headers: { ...framing },
    });
    outgoing.on("error", () => response.destroy());
    outgoing.on("response", (answer) => {
      if (answer.headers["content-length"] !== undefined) {
        response.setHeader("content-length", answer.headers["content-length"]);
      }
      pour(answer, response);
    });
    if (method === "PUT") pour(incoming, outgoing);
    else outgoing.end();
  });
});

afterAll(() => {
  agent.destroy();
  for (const server of servers) server.close().closeAllConnections();
});

interface Received {
  bytes: number;
  digest: string;
}

/** Reads as somebody who stops now and then. */
async function digestOf(message: IncomingMessage): Promise<Received> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of message) {
    hash.update(piece);
    bytes += piece.length;
    if (bytes % 7 < 3) await turn();
  }
  return { bytes, digest: hash.digest("hex") };
}

function ask(method: string, path: string, headers: Record<string, number> = {}) {
  const outgoing = request({ host: "127.0.0.1", port: relayPort, method, path, headers });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on("response", resolve).on("error", reject);
  });
  return { outgoing, answer };
}

async function fetchSlowly(path: string): Promise<Received> {
  const { outgoing, answer } = ask("GET", path);
  outgoing.end();
  return digestOf(await answer);
}

async function upload(path: string): Promise<Received> {
  const { outgoing, answer } = ask("PUT", path, path === "/length" ? { "content-length": body.length } : {});
  for (let start = 0, piece = 1; start < body.length; start += piece, piece = (piece * 3) % 150_001) {
    if (!outgoing.write(body.subarray(start, start + piece))) await once(outgoing, "drain");
  }
  outgoing.end();
  return JSON.parse(await text(await answer));
}

test.each(["/length", "/chunks"])(
  "bodies of %s arrive whole, on connections that are used again, for readers who stop",
  async (path) => {
    for (let round = 0; round < 3; round++) {
      const bodies = await Promise.all(Array.from({ length: 8 }, () => fetchSlowly(path)));
      expect(new Set(bodies.map(({ digest }) => digest))).toEqual(new Set([digest]));
    }
  },
);

test.each(["/length", "/chunks"])("uploads of %s arrive whole, at an origin that stops", async (path) => {
  for (let round = 0; round < 3; round++) {
    const bodies = await Promise.all(Array.from({ length: 8 }, () => upload(path)));
    expect(new Set(bodies.map(({ digest }) => digest))).toEqual(new Set([digest]));
  }
});

test("an answer that is cut off is cut off for its reader, and harms none that is read beside it", async () => {
  const [cut, whole] = await Promise.allSettled([fetchSlowly("/cut"), fetchSlowly("/chunks")]);
  expect(cut.status).toBe("rejected");
  expect(whole).toMatchObject({ value: { digest } });
});

test("readers who leave in the middle do not change what others read", async () => {
  const leaving = Array.from({ length: 8 }, async (_, index) => {
    const socket = createConnection(relayPort, "127.0.0.1");
    socket.write(`GET /${index % 2 === 0 ? "length" : "chunks"} HTTP/1.1\r\nhost: relay\r\n\r\n`);
    for await (const _piece of socket) break;
  });
  const staying = Array.from({ length: 8 }, () => fetchSlowly("/chunks"));
  await Promise.all(leaving);
  const bodies = await Promise.all(staying);
  expect(new Set(bodies.map(({ digest }) => digest))).toEqual(new Set([digest]));
});
