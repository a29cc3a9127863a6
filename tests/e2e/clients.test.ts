/** Real clients through the door with no proxy variable: what they ask for is what the server gets. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { bundleForNode } from "../support/bundle.ts";
import { npmRegistry } from "../support/npm-registry.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startHttpUpstream, startTlsUpstream, type Upstream } from "../support/upstream.ts";

const big = Buffer.alloc(3 << 20, "streamed ");
/** The connections that requests for /kept came on. */
const kept = new Set<object>();
const registry = npmRegistry("registry.test", "left-pad-of-tests", "padded");

const listener: RequestListener = (request, response) => {
  if (request.headers.host === "registry.test") return registry(request, response);
  if (request.url === "/kept") kept.add(request.socket);
  if (request.url === "/big") return void response.end(big);
  if (request.url === "/events") return void sendEvents(response);
  if (request.url === "/early") return void answerEarly(request, response);
  const hash = createHash("sha256");
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  request.on("end", () =>
    response.setHeader("content-type", "application/json").end(
      JSON.stringify({
        method: request.method,
        url: request.url,
        host: request.headers.host,
        bytes,
        sha256: hash.digest("hex"),
      }),
    ),
  );
};

/** The bytes of an upload that was answered with its first ones. */
let afterEarly: Promise<number> = Promise.resolve(0);

function answerEarly(
  request: Parameters<RequestListener>[0],
  response: Parameters<RequestListener>[1],
): void {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (!response.writableEnded) response.end("early");
  });
  afterEarly = once(request, "close").then(() => bytes);
}

function sendEvents(response: Parameters<RequestListener>[1]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let count = 0;
  const timer = setInterval(() => {
    response.write(`data: ${count}\n\n`);
    if (++count === 3) {
      clearInterval(timer);
      response.end();
    }
  }, 200);
}

let tls: Upstream;
let plain: Upstream;
let sockets: WebSocketServer;
let server: TestServer;
let itx: Itx;
let sandbox: SandboxHandle;

beforeAll(async () => {
  tls = await startTlsUpstream(["api.test", "registry.test", "203.0.113.9"], listener);
  plain = await startHttpUpstream(listener);
  sockets = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  sockets.on("connection", (socket) => {
    socket.on("message", (data, binary) => socket.send(data, { binary }));
    socket.on("close", (code, reason) => closes.push([code, reason.toString()]));
  });
  await once(sockets, "listening");
  const { port } = sockets.address() as { port: number };
  server = await startTestServer({
    upstreams: {
      "api.test": tls.address,
      "registry.test": tls.address,
      "plain.test": plain.address,
      "203.0.113.9": tls.address,
      "ws.test": `127.0.0.1:${port}`,
    },
    upstreamCa: tls.caPem,
  });
  itx = await server.itx("prj_clients");
  sandbox = await itx.sandboxes.get("/sandboxes/clients").create({ instanceType: "standard-4" });
});
const closes: [number, string][] = [];
afterAll(async () => {
  await server?.close();
  await tls?.close();
  await plain?.close();
  sockets?.close();
});

async function run(command: string): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.exec(command, { timeout: 60_000 });
  expect(exitCode, stdout + stderr).toBe(0);
  return stdout;
}

const got = (method: string, url: string, host: string) => expect.objectContaining({ method, url, host });

test.each([
  ["curl over HTTPS", "curl -sS https://api.test/c?x=1", got("GET", "/c?x=1", "api.test")],
  ["curl over HTTP", "curl -sS http://plain.test/c", got("GET", "/c", "plain.test")],
  [
    "curl with Expect: 100-continue",
    "head -c 2000000 /dev/zero | curl -sS -T - -H 'Expect: 100-continue' https://api.test/up",
    got("PUT", "/up", "api.test"),
  ],
  ["curl by literal address", "curl -sSk https://203.0.113.9/ip", got("GET", "/ip", "203.0.113.9")],
  ["wget", "wget -qO- https://api.test/w", got("GET", "/w", "api.test")],
  [
    "Node's fetch",
    `node -e 'fetch("https://api.test/n",{method:"POST",body:"hi"}).then(r=>r.text()).then(console.log)'`,
    got("POST", "/n", "api.test"),
  ],
  [
    "Python's urllib",
    `python3 -c 'import urllib.request as u; print(u.urlopen("https://api.test/p").read().decode())'`,
    got("GET", "/p", "api.test"),
  ],
])("%s", async (_name, command, expected) => {
  expect(JSON.parse(await run(command))).toEqual(expected);
});

test("an upload arrives byte for byte, a download too", async () => {
  await run("head -c 5000000 /dev/urandom > /workspace/up");
  const sum = (await run("sha256sum /workspace/up")).slice(0, 64);
  const echo = JSON.parse(await run("curl -sS --data-binary @/workspace/up https://api.test/echo"));
  expect(echo).toMatchObject({ bytes: 5_000_000, sha256: sum });
  const down = (await run("curl -sS https://api.test/big | sha256sum")).slice(0, 64);
  expect(down).toBe(createHash("sha256").update(big).digest("hex"));
});

test.each([
  ["GET", "https://api.test/f?x=1", undefined],
  ["POST", "https://api.test/f", undefined],
  ["POST", "http://plain.test/f", "some text"],
  ["DELETE", "https://203.0.113.9/f", undefined],
])("itx.egress.fetch: %s %s", async (method, url, body) => {
  const response = await itx.egress.fetch(new Request(url, { method, body: body ?? null }));
  const { host, pathname, search } = new URL(url);
  expect(await response.json()).toMatchObject({
    ...{ method, url: pathname + search, host },
    bytes: body?.length ?? 0,
  });
});

const offer = "-H 'Connection: Upgrade' -H 'Upgrade: h2c'";
const webSocketOffer =
  "-H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='";

test.each([
  ["a refused WebSocket", `curl -sS -m 20 ${webSocketOffer} https://api.test/big`],
  ["another protocol that is offered", `curl -sS -m 20 ${offer} http://plain.test/big`],
])("%s is answered with the whole body", async (_, command) => {
  const { stdout, stderr } = await sandbox.exec(`${command} | sha256sum`);
  expect(stdout.split(" ")[0], stderr).toBe(createHash("sha256").update(big).digest("hex"));
});

test.each(["http://plain.test", "https://api.test"])(
  "%s: a body beside an offer of another protocol arrives, and the connection is kept",
  async (origin) => {
    const { stdout, stderr } = await sandbox.exec(
      `curl -sSv -m 20 ${offer} -d hello ${origin}/one --next -sS -m 20 ${offer} -d 'hello again' ${origin}/two`,
    );
    expect(stdout.match(/"bytes":\d+/g), stderr).toEqual(['"bytes":5', '"bytes":11']);
    expect(stderr).toMatch(/Re-using existing connection/);
  },
);

test("an upload that is answered early is carried to its end, and the next request does not wait", async () => {
  await sandbox.exec("head -c 5000000 /dev/zero > /tmp/upload");
  const { stdout, stderr } = await sandbox.exec(
    "curl -sS -m 20 -H Expect: -T /tmp/upload https://api.test/early --next -sS -m 20 https://api.test/after",
  );
  expect(stdout, stderr).toMatch(/^early\{.*"url":"\/after"/);
  expect(await afterEarly).toBe(5_000_000);
});

test("the door keeps its connection to an origin, whoever asks next", async () => {
  for (let i = 0; i < 4; i++) await run("curl -sS https://api.test/kept");
  expect(kept.size).toBe(1);
});

test("server-sent events arrive as they are sent", async () => {
  const code = `const started=Date.now(); const times=[];
    const r=await fetch("https://api.test/events");
    for await (const chunk of r.body) times.push(Date.now()-started);
    console.log(times.length >= 3)`;
  await sandbox.writeFile("/workspace/events.mjs", code);
  expect(await run("node /workspace/events.mjs")).toBe("true\n");
});

test("npm install from a registry", async () => {
  const out = await run(
    "mkdir -p /workspace/app && cd /workspace/app && npm init -y >/dev/null && npm install --registry https://registry.test/ left-pad-of-tests >/dev/null 2>&1 && node -p 'require(\"left-pad-of-tests\")'",
  );
  expect(out).toBe("padded\n");
});

test("ws: a thousand echo frames of mixed sizes in order, and the close code", async () => {
  const source = `import WebSocket from "ws";
    const socket = new WebSocket("ws://ws.test/echo");
    const sizes = Array.from({ length: 1000 }, (_, i) => (i % 100 === 99 ? 70000 : i % 10 === 9 ? 2000 : i % 125) + 1);
    let next = 0;
    socket.on("open", () => sizes.forEach((size, i) => socket.send(i % 2 ? "x".repeat(size) : Buffer.alloc(size, i))));
    socket.on("message", (data, binary) => {
      if (data.length !== sizes[next] || binary !== (next % 2 === 0)) { console.log("wrong frame", next); process.exit(1); }
      if (++next === sizes.length) socket.close(4321, "enough");
    });
    socket.on("close", (code) => console.log(next, code));
    socket.on("error", (error) => { console.log(String(error)); process.exit(1); });`;
  await sandbox.writeFile("/workspace/ws.mjs", await bundleForNode(source));
  expect(await run("node /workspace/ws.mjs")).toBe("1000 4321\n");
  await expect.poll(() => closes, { timeout: 10_000 }).toContainEqual([4321, "enough"]);
});

test("a server of the sandbox's own on port 80 is reached on loopback", async () => {
  const out = await run(
    "cd /tmp && echo mine > index.html && (python3 -m http.server 80 >/dev/null 2>&1 & echo $! > /tmp/pid) && for i in $(seq 50); do curl -sf http://127.0.0.1/index.html && break; sleep 0.1; done; kill $(cat /tmp/pid)",
  );
  expect(out).toBe("mine\n");
});

test.each(["203.0.113.9:22", "203.0.113.9:8443", "[2001:db8::1]:25"])(
  "%s is refused at once",
  async (target) => {
    // curl ends with 7 when it was refused, and with 28 when nobody answered until its own limit.
    const { exitCode } = await sandbox.exec(`curl -sS -m 20 telnet://${target} </dev/null`);
    expect(exitCode).toBe(7);
  },
);
