import { createHash, randomBytes } from "node:crypto";
import { createServer, get, type IncomingMessage, type RequestListener } from "node:http";
import { type AddressInfo, createConnection } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pourAnswer, ReusingAgent } from "../../js/src/engine/reused-buffers.ts";

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
const origin: RequestListener = async (request, response) => {
  if (request.url === "/length") response.setHeader("content-length", body.length);
  if (request.url === "/cut") response.setHeader("content-length", body.length + 1);
  for (let start = 0, piece = 1; start < body.length; start += piece, piece = (piece * 3) % 150_001) {
    if (!response.write(body.subarray(start, start + piece)))
      await new Promise((go) => response.once("drain", go));
    else if (piece % 2 === 0) await turn();
  }
  if (request.url === "/cut") response.destroy();
  else response.end();
};

beforeAll(async () => {
  originPort = await listen(origin);
  relayPort = await listen((request, response) => {
    const outgoing = get({ host: "127.0.0.1", port: originPort, path: request.url, agent }, (answer) => {
      answer.on("close", () => answer.complete || response.destroy());
      response.on("close", () => response.writableFinished || answer.destroy());
      if (answer.headers["content-length"] !== undefined) {
        response.setHeader("content-length", answer.headers["content-length"]);
      }
      pourAnswer(answer, response);
    });
    outgoing.on("error", () => response.destroy());
  });
});

afterAll(() => {
  agent.destroy();
  for (const server of servers) server.close().closeAllConnections();
});

async function fetchSlowly(path: string): Promise<{ bytes: number; digest: string }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    get({ host: "127.0.0.1", port: relayPort, path }, resolve).on("error", reject),
  );
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const piece of answer) {
    hash.update(piece);
    bytes += piece.length;
    if (bytes % 7 < 3) await turn();
  }
  return { bytes, digest: hash.digest("hex") };
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
