/** Servers of one's own behind public names, as docs/guide/egress.md describes them, and what is said when TLS to them fails. */
import type { RequestListener } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startHttpUpstream, startTlsUpstream, type Upstream } from "../support/upstream.ts";

const listener: RequestListener = (request, response) => response.end(`got ${request.url}`);

let trusted: Upstream;
let stranger: Upstream;
let plain: Upstream;
let server: TestServer;
let itx: Itx;
let sandbox: SandboxHandle;

beforeAll(async () => {
  trusted = await startTlsUpstream(["trusted.test"], listener);
  stranger = await startTlsUpstream(["stranger.test"], listener);
  plain = await startHttpUpstream(listener);
  server = await startTestServer({
    upstreams: {
      "trusted.test": trusted.address,
      "misnamed.test": trusted.address,
      "stranger.test": stranger.address,
      "bare.test": plain.address,
      "plain.test": `http://${plain.address}`,
    },
    upstreamCa: trusted.caPem,
  });
  itx = await server.itx("prj_upstreams");
  sandbox = await itx.sandboxes.get("/sandboxes/main").create();
});
afterAll(async () => {
  await server?.close();
  for (const upstream of [trusted, stranger, plain]) await upstream?.close();
});

const curl = async (url: string) => (await sandbox.exec(`curl -sS --path-as-is '${url}'`)).stdout;

test.each([
  ["https://trusted.test/a", /^got \/a$/],
  ["https://misnamed.test/a", /cannot be reached: .*misnamed\.test/],
  ["https://stranger.test/a", /certificate is not trusted \(\w+\); .*--upstream-ca/],
  ["https://bare.test/a", /speaks no TLS; .*http:\/\/address:port/],
  ["http://bare.test/a", /^got \/a$/],
  ["https://plain.test/a", /^got \/a$/],
])("%s", async (url, answer) => {
  const got = await curl(url);
  expect(got).toMatch(answer);
  expect(got).not.toMatch(/openssl|use-system-ca/);
});

test("a path rule meets what is decoded and resolved, and no other spelling", async () => {
  await itx.egress.setPolicy({
    default: "allow",
    rules: [{ id: "no-admin", action: "deny", paths: ["/admin/*"] }],
  });
  for (const path of ["/admin/x", "/%61dmin/x", "/a/../admin/x", "/a/%2e%2e/admin/x", "/admin\\x"])
    expect(await curl(`http://bare.test${path}`), path).toMatch(/no-admin/);
  for (const path of ["//admin/x", "/ADMIN/x", "/admin%2fx", "/admin"])
    expect(await curl(`http://bare.test${path}`), path).toMatch(/^got/);
});

test("what leaves a command's session by setsid outlives the command's timeout, and ends with the container", async () => {
  const { exitCode } = await sandbox.exec("setsid sleep 31415 >/dev/null 2>&1 & sleep 100", { timeout: 500 });
  expect(exitCode).toBe(124);
  expect((await sandbox.exec("pgrep -f 'sleep 3141[5]'")).exitCode).toBe(0);
  await sandbox.restart();
  expect((await sandbox.exec("pgrep -f 'sleep 3141[5]'")).exitCode).toBe(1);
});
