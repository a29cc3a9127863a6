/** egr-e1, egr-e3, sec-e2: one way out, sockets that stay open, secrets that go only where they are pinned. */

import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import type { Itx, SandboxHandle } from "../../../js/src/node/itx.ts";
import { bundleForNode } from "../../support/bundle.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";
import { startHttpUpstream, startTlsUpstream, tlsIdentity, type Upstream } from "../../support/upstream.ts";

const material = "pin-Zq83kTt0wLm5";
const seen: { server: string; request: string; headers: string }[] = [];
const redirects: Record<string, string> = {
  "/to-f-301": "https://f.test/x",
  "/to-f-307": "https://f.test/x",
  "/to-http": "http://e.test/x",
  "/to-port": "https://e.test:8443/x",
  "/to-e": "https://e.test/x",
};
const record =
  (server: string): RequestListener =>
  (request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
    request.on("end", () => {
      seen.push({
        server,
        request: `${request.method} ${request.url}`,
        headers: JSON.stringify(request.rawHeaders) + body,
      });
      const location = redirects[request.url ?? ""];
      if (location === undefined) response.end(`${server} answers\n`);
      else response.writeHead(request.url?.endsWith("307") ? 307 : 301, { location }).end();
    });
  };

let e: Upstream;
let ePlain: Upstream;
let f: Upstream;
let sockets: ReturnType<typeof createServer>;
const handshakes: (string | undefined)[] = [];
let server: TestServer;
let itx: Itx;

beforeAll(async () => {
  e = await startTlsUpstream(["e.test"], record("E"));
  ePlain = await startHttpUpstream(record("E over http"));
  f = await startTlsUpstream(["f.test"], record("F"));
  const identity = await tlsIdentity(["ws.test"]);
  sockets = createServer({ key: identity.keyPem, cert: identity.certPem });
  const upgrades = new WebSocketServer({
    server: sockets,
    handleProtocols: (protocols) => (protocols.has("b") ? "b" : false),
    verifyClient: ({ req }: { req: { url?: string; headers: { authorization?: string } } }, answer) => {
      handshakes.push(req.headers.authorization);
      answer(req.url !== "/refused", 401);
    },
  });
  upgrades.on("connection", (socket) => {
    socket.on("message", (data, binary) => {
      if (data.toString() === "bye") socket.close(4001, "bye");
      else socket.send(data, { binary });
    });
  });
  await new Promise<void>((resolve) => sockets.listen(0, "127.0.0.1", resolve));
  server = await startTestServer({
    upstreams: {
      "e.test:443": e.address,
      "e.test:80": ePlain.address,
      "f.test": f.address,
      "ws.test": `127.0.0.1:${(sockets.address() as AddressInfo).port}`,
    },
    upstreamCa: e.caPem + f.caPem + identity.caPem,
  });
  itx = await server.itx("prj_door");
  await itx.secrets.get("/secrets/pin").set({ material, origins: ["https://e.test"] });
  await itx.secrets.get("/secrets/ws").set({ material, origins: ["https://ws.test"] });
});
afterAll(async () => {
  await server?.close();
  for (const upstream of [e, ePlain, f]) await upstream?.close();
  sockets?.close();
});

describe("sec-e2: a secret goes only where it is pinned", () => {
  const placeholder = 'getSecret("/secrets/pin")';
  let sandbox: SandboxHandle;
  beforeAll(async () => {
    sandbox = await itx.sandboxes.get("/sandboxes/pin").create({ env: { KEY: placeholder } });
  });
  const curl = async (args: string) =>
    (await sandbox.exec(`curl -gsS -m 10 -w '\\n%{http_code}' ${args}`)).stdout;

  test("to its origin it is delivered, in a header and in a cookie", async () => {
    expect(await curl('-H "authorization: Bearer $KEY" https://e.test/control')).toBe("E answers\n\n200");
    expect(await curl('-H "cookie: k=$KEY" https://e.test/cookie')).toBe("E answers\n\n200");
    const delivered = seen.filter(({ headers }) => headers.includes(material));
    expect(delivered.map(({ server, request }) => `${server} ${request}`)).toEqual([
      "E GET /control",
      "E GET /cookie",
    ]);
  });

  test.each([
    ["to another server under its Host", '-k -H "x: $KEY" -H "Host: e.test" https://f.test/'],
    ["to its own host over http", '-H "x: $KEY" http://e.test/'],
    ["to another port", '-H "x: $KEY" https://e.test:8443/'],
    ["to its name with a dot at the end", '-k -H "x: $KEY" https://e.test./'],
    ["to another server that redirects to it", '-L -H "x: $KEY" https://f.test/to-e'],
    ["by a 301 to another server", '-L --location-trusted -H "x: $KEY" https://e.test/to-f-301'],
    [
      "by a 307 to another server",
      '-L --location-trusted -X POST -d a=b -H "x: $KEY" https://e.test/to-f-307',
    ],
    ["by a redirect to http", '-L --location-trusted -H "x: $KEY" https://e.test/to-http'],
    ["by a redirect to another port", '-L --location-trusted -H "x: $KEY" https://e.test/to-port'],
    ["in a query", '"https://e.test/q?k=$KEY"'],
    [
      "with its SNI and another Host",
      '-k --connect-to f.test:443:e.test:443 -H "x: $KEY" -H "Host: f.test" https://e.test/',
    ],
  ])("%s: never", async (_name, args) => {
    const answer = await curl(args);
    expect(answer).not.toContain(material);
    expect(seen.filter(({ server, headers }) => server !== "E" && headers.includes(material))).toEqual([]);
    expect(answer).not.toMatch(/^(E over http|F) answers\n\n200$/);
  });

  test("in a body it is only text", async () => {
    await curl(`-d "$KEY" https://e.test/body`);
    const got = seen.find(({ request }) => request === "POST /body");
    expect(got?.headers).toContain("getSecret(");
    expect(got?.headers).not.toContain(material);
  });

  test("a refusal names both origins and has no material; each delivered use is one audit entry", async () => {
    const answer = await curl('-H "x: $KEY" https://f.test/');
    expect(answer).toMatch(/403$/);
    expect(answer).toContain("https://e.test");
    expect(answer).toContain("https://f.test");
    const { events } = await itx.streams.get("/secrets/pin").read({ limit: 1000 });
    const used = events.filter(({ type }) => type.endsWith("secret/used"));
    expect(used).toHaveLength(seen.filter(({ headers }) => headers.includes(material)).length);
  });
});

test("egr-e3: a WebSocket over TLS with a secret in its handshake", async () => {
  const sandbox = await itx.sandboxes.get("/sandboxes/ws").create({ sleepAfter: "4s" });
  const source = `import WebSocket from "ws";
    const authorization = 'Bearer getSecret("/secrets/ws")';
    const refused = new WebSocket("wss://ws.test/refused", ["a", "b"], { headers: { authorization } });
    const status = await new Promise((resolve) => { refused.on("unexpected-response", (_, r) => resolve(r.statusCode)); refused.on("error", () => {}); });
    const socket = new WebSocket("wss://ws.test/echo", ["a", "b"], { headers: { authorization } });
    const next = () => new Promise((resolve) => socket.once("message", (data, binary) => resolve([data, binary])));
    await new Promise((resolve, reject) => { socket.once("open", resolve); socket.once("error", reject); });
    const frames = ["text", Buffer.alloc(1 << 20, 7), authorization];
    const same = [];
    for (const frame of frames) { const got = next(); socket.send(frame); const [data, binary] = await got; same.push(Buffer.from(frame).equals(data) && binary === Buffer.isBuffer(frame)); }
    const pong = new Promise((resolve) => socket.once("pong", () => resolve(true))); socket.ping();
    await pong;
    await new Promise((resolve) => setTimeout(resolve, Number(process.argv[2])));
    const closed = new Promise((resolve) => socket.once("close", (code, reason) => resolve([code, reason.toString()])));
    socket.send("bye");
    console.log(JSON.stringify({ status, protocol: socket.protocol, same, closed: await closed }));`;
  await sandbox.writeFile("/workspace/ws.mjs", await bundleForNode(source));
  const idle = process.env.FULL === "1" ? 30_000 : 6_000;
  const { stdout, stderr, exitCode } = await sandbox.exec(`node /workspace/ws.mjs ${idle}`, {
    timeout: 60_000,
  });
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual({
    status: 401,
    protocol: "b",
    same: [true, true, true],
    closed: [4001, "bye"],
  });
  expect(handshakes).toEqual([`Bearer ${material}`, `Bearer ${material}`]);
  await sandbox.destroy();
});

test("egr-e1: refusals are 403 with a JSON body, and the audit shows each request once", async () => {
  const jailed = await server.itx("prj_jail");
  await jailed.egress.setPolicy({
    default: "deny",
    rules: [{ id: "e", action: "allow", hosts: ["e.test"] }],
  });
  const sandbox = await jailed.sandboxes.get("/sandboxes/jail").create();
  const { stdout } = await sandbox.exec(
    "curl -sS http://e.test/1; curl -sS https://e.test/2; curl -s -w ' %{http_code}' http://f.test/3; curl -s -k -w ' %{http_code}' https://f.test/4",
  );
  const [one, two, ...refusals] = stdout.split("\n");
  expect([one, two]).toEqual(["E over http answers", "E answers"]);
  const bodies = refusals.join("\n").split(/ 403/).slice(0, -1);
  expect(bodies, stdout).toHaveLength(2);
  for (const body of bodies) expect(JSON.parse(body)).toHaveProperty("error");
  await jailed.streams.get("/egress").waitFor(4, 10_000);
  const { events } = await jailed.streams.get("/egress").read({ limit: 100 });
  expect(events.map(({ payload }) => [payload.host, payload.path, payload.decision])).toEqual([
    ["e.test", "/1", "forward"],
    ["e.test", "/2", "forward"],
    ["f.test", "/3", "deny"],
    ["f.test", "/4", "deny"],
  ]);
  await sandbox.destroy();
});
