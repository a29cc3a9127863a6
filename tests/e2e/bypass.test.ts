/** At least 120 ways round the door, each tried from inside: none reaches the forbidden server or the host's loopback. */

import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxHandle } from "../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startHttpUpstream, startTlsUpstream, type Upstream } from "../support/upstream.ts";
import { bypassTries } from "./bypass-tries.ts";

const MARK = "the-forbidden-answer";
const reached: string[] = [];
const forbiddenListener: RequestListener = (request, response) => {
  reached.push(`${request.method} ${request.headers.host}${request.url}`);
  response.end(MARK);
};
const allowedListener: RequestListener = (request, response) => {
  const port = (hostLoopback.address() as AddressInfo).port;
  const redirects: Record<string, string> = {
    "/redirect-forbidden": "http://evil.test/",
    "/redirect-loopback": `http://127.0.0.1:${port}/`,
    "/redirect-metadata": "http://169.254.169.254/latest/meta-data/",
  };
  const location = redirects[request.url ?? ""];
  if (request.headers.host !== "allowed.test") reached.push(`the allowed server as ${request.headers.host}`);
  if (location === undefined) response.end("allowed\n");
  else response.writeHead(302, { location }).end();
};

/** Anything that speaks to the host's own loopback, in whatever protocol. */
let hostLoopback: Server;
let forbidden: Upstream;
let forbiddenTls: Upstream;
let allowed: Upstream;
let allowedTls: Upstream;
let server: TestServer;
let sandbox: SandboxHandle;

beforeAll(async () => {
  hostLoopback = createServer((socket) => {
    reached.push("the host's loopback");
    socket.end(MARK);
  });
  await new Promise<void>((resolve) => hostLoopback.listen(0, "127.0.0.1", resolve));
  forbidden = await startHttpUpstream(forbiddenListener);
  forbiddenTls = await startTlsUpstream(["evil.test", "203.0.113.66"], forbiddenListener);
  allowed = await startHttpUpstream(allowedListener);
  allowedTls = await startTlsUpstream(["allowed.test"], allowedListener);
  server = await startTestServer({
    upstreams: {
      "allowed.test:80": allowed.address,
      "allowed.test:443": allowedTls.address,
      "evil.test:80": forbidden.address,
      "evil.test:443": forbiddenTls.address,
      "sub.evil.test": forbidden.address,
      "203.0.113.66:80": forbidden.address,
      "203.0.113.66:443": forbiddenTls.address,
    },
    upstreamCa: allowedTls.caPem + forbiddenTls.caPem,
  });
  const itx = await server.itx("prj_bypass");
  await itx.egress.setPolicy({
    default: "deny",
    rules: [{ id: "allowed", action: "allow", hosts: ["allowed.test"] }],
  });
  sandbox = await itx.sandboxes.get("/sandboxes/bypass").create({ instanceType: "standard-4" });
});
afterAll(async () => {
  await server?.close();
  for (const upstream of [forbidden, forbiddenTls, allowed, allowedTls]) await upstream?.close();
  hostLoopback?.close();
});

test("the allowed server is reached, and the forbidden one would be without the policy", async () => {
  const { stdout } = await sandbox.exec("curl -sS http://allowed.test/; curl -sS https://allowed.test/");
  expect(stdout).toBe("allowed\nallowed\n");
  const itx = await server.itx("prj_open");
  const open = await itx.sandboxes.get("/sandboxes/open").create();
  const result = await open.exec("curl -sS http://evil.test/; curl -sS https://evil.test/");
  expect(result.stdout).toBe(MARK + MARK);
  await open.destroy();
  reached.length = 0;
});

test("every try fails to leave, and to reach the host's loopback", async () => {
  const { port } = hostLoopback.address() as AddressInfo;
  const tries = bypassTries({ port, tlsPort: forbiddenTls.port });
  expect(tries.length).toBeGreaterThanOrEqual(120);
  const lines: string[] = [];
  const escaped: string[] = [];
  for (const { title, command } of tries) {
    const before = reached.length;
    const { stdout, stderr, exitCode } = await sandbox.exec(command, { timeout: 20_000 });
    const output = `${stdout}${stderr}`.replaceAll(/\s+/g, " ").trim();
    lines.push(`${title}: ${exitCode} ${output.slice(0, 100)}`);
    if (reached.length > before || output.includes(MARK))
      escaped.push(`${title}: ${reached.slice(before)} ${output.slice(0, 200)}`);
    expect(output, title).not.toMatch(/^root:[^:]*:\d+:0:/m);
  }
  console.log(`${tries.length} tries\n${lines.join("\n")}`);
  expect(escaped).toEqual([]);
});
