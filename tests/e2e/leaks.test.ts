/**
 * Three known secrets and a busy session; then their bytes are searched for everywhere a secret must not be: raw, in base64 and
 * percent-encoded.
 */

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import type { RequestListener } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { type GitServer, gitServer } from "../support/git-server.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startTlsUpstream, type Upstream } from "../support/upstream.ts";

const secrets = { api: "wk/9+Zq:api?secret&Q7x", github: "gho_Uq8Lw2Rk5Tz9Xb1Nc4", field: "fld~M3p%V6s#J9d" };
const basic = `Basic ${Buffer.from(`x-access-token:${secrets.github}`).toString("base64")}`;

/** Every spelling in which the material could be told. */
function spellings(material: string): string[] {
  const raw = Buffer.from(material);
  // Base64 of a text in which the material stands at any of the three alignments shares this much of its middle.
  const aligned = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), raw])
      .toString("base64")
      .slice(shift === 0 ? 0 : 4, -4),
  );
  const percent = encodeURIComponent(material);
  return [material, ...aligned, percent, percent.toLowerCase(), raw.toString("hex")];
}
const needles = Object.values(secrets).flatMap(spellings);

function search(where: string, bytes: Buffer | string): void {
  const haystack = typeof bytes === "string" ? bytes : bytes.toString("latin1");
  for (const needle of needles) expect(haystack.includes(needle), `${where} holds ${needle}`).toBe(false);
}

const seenByServer: string[] = [];
/** Echoes what it got, as a careless or hostile server does. */
const echo: RequestListener = (request, response) => {
  seenByServer.push(String(request.headers.authorization ?? request.headers["x-key"]));
  response.statusMessage = `Got ${request.headers["x-key"] ?? "nothing"}`.replace(/[^\x20-\x7e]/g, "");
  response.setHeader("x-echo", String(request.headers.authorization ?? ""));
  response.setHeader("content-type", "application/json");
  response.end(
    JSON.stringify({
      headers: request.headers,
      encoded: encodeURIComponent(String(request.headers["x-key"])),
    }),
  );
};

let git: GitServer;
let upstream: Upstream;
let server: TestServer;
let itx: Itx;
let sandbox: SandboxHandle;
const responses: string[] = [];

beforeAll(async () => {
  git = gitServer("acme/private", basic);
  upstream = await startTlsUpstream(["api.test", "other.test", "github.com"], (request, response) =>
    (request.headers.host === "github.com" ? git.listener : echo)(request, response),
  );
  server = await startTestServer({
    upstreams: {
      "api.test": upstream.address,
      "other.test": upstream.address,
      "github.com": upstream.address,
    },
    upstreamCa: upstream.caPem,
  });
  itx = await server.itx("prj_leaks");
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
  git?.close();
});

async function run(command: string): Promise<string> {
  const { stdout, stderr } = await sandbox.exec(command, { timeout: 30_000 });
  responses.push(stdout, stderr);
  return stdout;
}

test("a busy session with three secrets", async () => {
  await itx.secrets.get("/secrets/api").set({ material: secrets.api, origins: ["https://api.test"] });
  await itx.secrets
    .get("/secrets/github/acme")
    .set({ material: { accessToken: secrets.github }, origins: ["https://github.com"] });
  await itx.secrets
    .get("/secrets/structured")
    .set({ material: { deep: { key: secrets.field } }, origins: ["https://api.test"] });
  await itx.connections.set({ kind: "github", name: "acme", secretPath: "/secrets/github/acme" });
  sandbox = await itx.sandboxes.get("/sandboxes/busy").create({
    env: {
      API_KEY: 'getSecret("/secrets/api")',
      FIELD: 'getSecret("/secrets/structured", { field: "deep.key" })',
    },
  });
  await run("env > /workspace/env; cat /workspace/env");
  await run('curl -sSi https://api.test/one -H "authorization: Bearer $API_KEY" | tee /workspace/answer');
  await run(
    'curl -sSi https://api.test/two -H "x-key: $FIELD" -u "user:$FIELD" --trace-ascii /workspace/trace',
  );
  await run('curl -sSi "https://api.test/three/$(printf %s "$API_KEY" | jq -sRr @uri)"');
  await run('curl -sS https://other.test/four -H "authorization: $API_KEY"'); // not its origin
  await run('curl -sS "https://api.test/five?key=$API_KEY" -g'); // not in a query
  await run('curl -sS http://api.test/six -H "authorization: $API_KEY"'); // not over http
  await run(
    "git clone -q https://github.com/acme/private /workspace/repo; git -C /workspace/repo log --format=%s",
  );
  await sandbox.sleep();
  await run("cat /workspace/answer /workspace/trace");
  await run("kill -9 $$");
  await sandbox.kill();
  await run("true");
  expect(seenByServer).toContain(`Bearer ${secrets.api}`);
  expect(seenByServer).toContain(`Basic ${Buffer.from(`user:${secrets.field}`).toString("base64")}`);
  expect(git.authorizations).toContain(basic);
});

test("no response holds them, also from a server that echoes its request", () => {
  expect(responses.join("")).toContain("x-echo");
  for (const response of responses) search("a response", response);
});

test("the container's file system and /proc do not hold them", async () => {
  // Spelled backwards, so that the search does not find itself.
  const pattern = needles
    .map((needle) => [...Buffer.from(needle).toString("hex")].reverse().join(""))
    .join(" ");
  const script = `import os, stat
needles = [bytes.fromhex(n[::-1]) for n in "${pattern}".split()]
found, seen = [], 0
for top in ("/root", "/workspace", "/tmp", "/etc", "/var", "/run", "/home", "/proc"):
    for folder, folders, files in os.walk(top):
        for name in files:
            path = os.path.join(folder, name)
            if top == "/proc" and name not in ("environ", "cmdline", "mountinfo", "maps"): continue
            try:
                # A pipe waits for whoever writes it.
                if not stat.S_ISREG(os.lstat(path).st_mode): continue
                data = open(path, "rb").read(50_000_000)
            except OSError: continue
            seen += 1
            if path.startswith("/proc/%d/" % os.getpid()): continue
            found += [path for needle in needles if needle in data]
print(seen, found)`;
  const { stdout, stderr } = await sandbox.exec(`python3 - <<'SCRIPT'\n${script}\nSCRIPT`, {
    timeout: 60_000,
  });
  expect(stderr).toBe("");
  const [, seen, found] = /^(\d+) (.*)$/.exec(stdout.trim()) ?? [];
  expect(Number(seen)).toBeGreaterThan(50);
  expect(found).toBe("[]");
});

test("no stream holds them", async () => {
  for (const path of [
    "/",
    "/egress",
    "/sandboxes",
    "/sandboxes/busy",
    "/secrets/api",
    "/secrets/structured",
    "/secrets/github/acme",
  ]) {
    const { events } = await itx.streams.get(path).read({ limit: 1000 });
    expect(events.length, path).toBeGreaterThan(0);
    search(path, JSON.stringify(events));
  }
});

test("no log line, no snapshot archive, no record on disk holds them", async () => {
  const log = server.logs.join("\n");
  expect(log).not.toBe("");
  search("the log", log);
  await sandbox.sleep();
  await server.server.close();
  let archives = 0;
  for (const name of readdirSync(server.stateDir, { recursive: true, encoding: "utf8" })) {
    const path = join(server.stateDir, name);
    if (!statSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    search(name, bytes);
    if (bytes.subarray(0, 4).toString("latin1") === "hsqs") {
      archives++;
      search(
        `${name}, unpacked`,
        execFileSync("unsquashfs", ["-cat", path, "answer", "trace", "env"], { maxBuffer: 1 << 28 }),
      );
    }
  }
  expect(archives).toBeGreaterThan(0);
});
