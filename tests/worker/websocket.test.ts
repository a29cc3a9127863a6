import { once } from "node:events";
import { Response, WebSocketPair } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket } from "ws";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

const material = "socket-material-1";
let worker: TestWorker;
let handshake: Record<string, string> = {};

beforeAll(async () => {
  worker = await startTestWorker({
    internet: (request) => {
      handshake = Object.fromEntries(request.headers);
      if (new URL(request.url).pathname === "/refuse") return new Response("no", { status: 401 });
      const { 0: client, 1: server } = new WebSocketPair();
      server.accept();
      server.addEventListener("message", ({ data }) => {
        if (data === "close") server.close(4001, "bye");
        else server.send(data as string);
      });
      const protocol = handshake["sec-websocket-protocol"]?.split(",").at(-1)?.trim();
      return new Response(null, {
        status: 101,
        webSocket: client,
        headers: {
          "x-secret-echo": material,
          ...(protocol === undefined ? {} : { "sec-websocket-protocol": protocol }),
        },
      });
    },
  });
  const itx = await worker.itx("prj_ws");
  await itx.secrets.get("/secrets/ws").set({ material, origins: ["wss://echo.example"] });
});
afterAll(() => worker[Symbol.asyncDispose]());

function open(url: string, headers: Record<string, string> = {}, protocols: string[] = []): WebSocket {
  const address = new URL("/test-socket", worker.url);
  address.protocol = "ws:";
  address.searchParams.set("project", "prj_ws");
  address.searchParams.set("url", url);
  return new WebSocket(address.href, protocols, { headers });
}

test("frames pass both ways in order and opaque, with the server's close", async () => {
  const placeholder = 'getSecret("/secrets/ws")';
  const socket = open("https://echo.example/", { authorization: `Bearer ${placeholder}` }, ["a", "b"]);
  const frames: string[] = [];
  socket.on("message", (data) => frames.push(String(data)));
  const [[upgrade]] = await Promise.all([once(socket, "upgrade"), once(socket, "open")]);
  expect(socket.protocol).toBe("b");
  expect(JSON.stringify(upgrade.headers)).not.toContain(material);
  expect(handshake.authorization).toBe(`Bearer ${material}`);
  const sent = Array.from({ length: 1_000 }, (_, index) => `${index} ${"x".repeat((index * 37) % 2_000)}`);
  for (const frame of [...sent, placeholder]) socket.send(frame);
  await expect.poll(() => frames.length, { timeout: 20_000 }).toBe(sent.length + 1);
  expect(frames).toEqual([...sent, placeholder]);
  socket.send("close");
  const [code, reason] = await once(socket, "close");
  expect([code, String(reason)]).toEqual([4001, "bye"]);
});

test("a refused handshake arrives as it was refused", async () => {
  const status = async (socket: WebSocket) => {
    socket.on("error", () => undefined);
    const [, response] = await once(socket, "unexpected-response");
    return response.statusCode;
  };
  expect(await status(open("https://echo.example/refuse"))).toBe(401);
  expect(await status(open("http://127.0.0.1/"))).toBe(403);
  const elsewhere = open("https://other.example/", { authorization: 'Bearer getSecret("/secrets/ws")' });
  expect(await status(elsewhere)).toBe(403);
});
