/** Large bodies through the door in constant memory. FULL=1: 1 GB down and 200 MB up; otherwise 200 MB and 100 MB. */
import { readdirSync, readFileSync } from "node:fs";
import type { RequestListener } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxHandle } from "../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { benchListener, startTlsUpstream, type Upstream } from "../support/upstream.ts";

const full = process.env.FULL === "1";
const down = full ? 1_000 : 200;
const up = full ? 200 : 100;
/** What buffers, garbage and a few sandbox processes may add; a body that were kept whole would add its own size in each process. */
const allowedMb = full ? 150 : 90;

const listener: RequestListener = (request, response) => {
  if (request.method === "GET") return benchListener(request, response);
  let bytes = 0;
  request.on("data", (chunk: Buffer) => (bytes += chunk.length));
  request.on("end", () => response.end(String(bytes)));
};

let upstream: Upstream;
let server: TestServer;
let sandbox: SandboxHandle;

beforeAll(async () => {
  console.log(`size: ${full ? "full" : "CI"}, ${down} MB down, ${up} MB up`);
  upstream = await startTlsUpstream(["big.test"], listener);
  server = await startTestServer({
    upstreams: { "big.test": upstream.address },
    upstreamCa: upstream.caPem,
  });
  const itx = await server.itx("prj_transfers");
  sandbox = await itx.sandboxes.get("/sandboxes/big").create({ instanceType: "standard-4" });
  await sandbox.exec("curl -sS https://big.test/small");
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

/** Resident megabytes of this process, where the host runs, and of everything it started. */
function residentMb(): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const parents = new Map<string, string[]>();
  for (const pid of pids) {
    const parent = /^PPid:\t(\d+)$/m.exec(read(`/proc/${pid}/status`))?.[1];
    if (parent !== undefined) parents.set(parent, [...(parents.get(parent) ?? []), pid]);
  }
  const tree = [String(process.pid)];
  for (const pid of tree) tree.push(...(parents.get(pid) ?? []));
  const kb = tree.map((pid) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0));
  return kb.reduce((sum, value) => sum + value, 0) / 1024;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** The most that was resident while the work ran, beyond what was before it. */
async function growthMb(work: Promise<unknown>): Promise<number> {
  const before = residentMb();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, residentMb());
  }, 250);
  await work.finally(() => clearInterval(timer));
  return most - before;
}

async function run(command: string): Promise<string> {
  const { stdout, stderr, exitCode } = await sandbox.exec(command, { timeout: 600_000 });
  expect(exitCode, stdout + stderr).toBe(0);
  return stdout.trim();
}

test("a download passes in constant memory", { timeout: 660_000 }, async () => {
  const transfer = run(`curl -sS 'https://big.test/stream?mb=${down}' | wc -c`);
  const grown = await growthMb(transfer);
  expect(await transfer).toBe(String(down * (1 << 20)));
  console.log(`${down} MB down: at most ${grown.toFixed(0)} MB more resident`);
  expect(grown).toBeLessThan(allowedMb);
});

test("an upload passes in constant memory", { timeout: 660_000 }, async () => {
  const transfer = run(`head -c ${up * (1 << 20)} /dev/zero | curl -sS -T - https://big.test/up`);
  const grown = await growthMb(transfer);
  expect(await transfer).toBe(String(up * (1 << 20)));
  console.log(`${up} MB up: at most ${grown.toFixed(0)} MB more resident`);
  expect(grown).toBeLessThan(allowedMb);
});
