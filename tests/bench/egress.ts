/**
 * `npm run bench:egress`: a request through the door beside the same request by the same client, over HTTPS to the same
 * server, sent directly. FULL=1 streams 1 GB instead of 100 MB.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { startTestServer } from "../support/server.ts";
import { median, printResult } from "./measure.ts";

const full = process.env.FULL === "1";
const REQUESTS = full ? 500 : 200;
const MEGABYTES = full ? 1000 : 100;
const ROUNDS = 3;
console.log(`size: ${full ? "full" : "CI"}, ${REQUESTS} requests, ${MEGABYTES} MB streams, ${ROUNDS} rounds`);

/** The client runs as the same text on both sides; it prints one line of JSON. */
const client = readFileSync(`${import.meta.dirname}/egress-client.mjs`, "utf8");

interface UpstreamProcess {
  address: string;
  port: number;
  caPem: string;
  caPath: string;
}

const upstreamProcess = spawn(
  process.execPath,
  ["--disable-warning=ExperimentalWarning", `${import.meta.dirname}/upstream-process.ts`],
  { stdio: ["pipe", "pipe", "inherit"] },
);
const upstream: UpstreamProcess = JSON.parse(await firstLine(upstreamProcess.stdout));
await using server = await startTestServer({
  upstreams: { "bench.test": upstream.address },
  upstreamCa: upstream.caPem,
});
const itx = await server.itx("prj_bench");
const sandbox = await itx.sandboxes.get("/sandboxes/bench").create({ instanceType: "standard-4" });
await sandbox.writeFile("/workspace/client.mjs", client);

interface Sample {
  first: number;
  latencies: number[];
  mbPerSecond: number;
}

async function inside(): Promise<Sample> {
  const run = `node /workspace/client.mjs https://bench.test ${REQUESTS} ${MEGABYTES}`;
  const { stdout, stderr, exitCode } = await sandbox.exec(run, { timeout: 600_000 });
  if (exitCode !== 0) throw new Error(stderr);
  return JSON.parse(stdout);
}

async function directly(): Promise<Sample> {
  const target = `https://bench.test:${upstream.port}`;
  const child = spawn(
    process.execPath,
    ["--input-type=module", "-", target, String(REQUESTS), String(MEGABYTES)],
    {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, NODE_EXTRA_CA_CERTS: upstream.caPath, BENCH_CONNECT: "127.0.0.1" },
    },
  );
  child.stdin.end(client);
  return JSON.parse(await firstLine(child.stdout));
}

async function firstLine(output: Readable): Promise<string> {
  for await (const line of createInterface(output)) return line;
  throw new Error("the process printed nothing");
}

const door: Sample[] = [];
const direct: Sample[] = [];
for (let round = 0; round < ROUNDS; round++) {
  direct.push(await directly());
  door.push(await inside());
}
await sandbox.destroy();
upstreamProcess.stdin.end();

const latency = (samples: Sample[]) => median(samples.flatMap((sample) => sample.latencies));
const first = (samples: Sample[]) => median(samples.map((sample) => sample.first));
const speed = (samples: Sample[]) => median(samples.map((sample) => sample.mbPerSecond));
console.log(
  `kept-alive request: direct ${latency(direct).toFixed(2)} ms, through the door ${latency(door).toFixed(2)} ms`,
);
console.log(
  `first request: direct ${first(direct).toFixed(2)} ms, through the door ${first(door).toFixed(2)} ms`,
);
console.log(
  `stream: direct ${speed(direct).toFixed(0)} MB/s, through the door ${speed(door).toFixed(0)} MB/s`,
);
printResult({
  door_added_ms_p50: latency(door) - latency(direct),
  stream_ratio: speed(door) / speed(direct),
  door_first_added_ms_p50: first(door) - first(direct),
  stream_mb_per_s: speed(door),
});
