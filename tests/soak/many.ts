/**
 * Many sandboxes on one machine, and snapshots of many files and of a large one. `npm run soak:many` is the full size: 200 sandboxes at once, 50,000
 * files, 2 GB. The tests run it small.
 */
import { readFileSync } from "node:fs";
import type { SandboxHandle } from "../../js/src/node/itx.ts";
import { median } from "../bench/measure.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { smoke } from "../support/size.ts";
import { descendants } from "./processes.ts";

export interface Size {
  sandboxes: number;
  files: number;
  megabytes: number;
}

export const sizes: Record<"smoke" | "ci" | "full", Size> = {
  smoke: { sandboxes: 2, files: 20, megabytes: 4 },
  ci: { sandboxes: 20, files: 1_000, megabytes: 48 },
  full: { sandboxes: 200, files: 50_000, megabytes: 2_048 },
};

export interface Outcome {
  /** Milliseconds from create to the first exec, in the order of the starts. */
  starts: number[];
  /** Median of the last ten over that of the first ten. */
  startRatio: number;
  /** Megabytes of all processes of an idle sandbox, shared pages by their share. */
  idleMb: number;
  answering: number;
  snapshotMs: number;
  restoreMs: number;
  filesKept: number;
  /** Megabytes that this process, with the engine's host in it, grew by while the large file's snapshot passed. */
  grownMb: number;
  runtimeGrownMb: number;
  digestKept: boolean;
}

export async function many(size: Size): Promise<Outcome> {
  await using server = await startTestServer();
  const crowd = await startCrowd(server, size.sandboxes);
  const snapshot = await snapshotOf(server, size.files);
  return { ...crowd, ...snapshot, ...(await largeFile(server, size.megabytes)) };
}

async function startCrowd(server: TestServer, count: number) {
  const itx = await server.itx("prj_many");
  // The first life of a server loads code that every later one finds loaded.
  const first = await itx.sandboxes.get("/sandboxes/warm-up").create({ instanceType: "lite" });
  await first.exec("true");
  await first.destroy();
  const starts: number[] = [];
  const sandboxes: SandboxHandle[] = [];
  for (let index = 0; index < count; index++) {
    const began = performance.now();
    const sandbox = await itx.sandboxes
      .get(`/sandboxes/s${index}`)
      .create({ instanceType: "lite", keepAlive: true });
    await sandbox.exec("true");
    starts.push(performance.now() - began);
    sandboxes.push(sandbox);
  }
  const idleMb = pssOfSandboxes() / count;
  const answers = await Promise.all(
    sandboxes.map(async (sandbox, index) => (await sandbox.exec(`echo ${index}`)).stdout),
  );
  await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()));
  return {
    starts,
    startRatio: median(starts.slice(-10)) / median(starts.slice(0, 10)),
    idleMb,
    answering: answers.filter((answer, index) => answer === `${index}\n`).length,
  };
}

/** Megabytes of every process of the sandboxes that this process runs. */
export function pssOfSandboxes(): number {
  const launchers = descendants(process.pid).filter(({ name }) => name === "sandboxd");
  const pids = new Set(launchers.flatMap(({ pid }) => [pid, ...descendants(pid).map((child) => child.pid)]));
  let kilobytes = 0;
  for (const pid of pids) kilobytes += memoryOf(pid, "smaps_rollup", "Pss");
  return kilobytes / 1024;
}

function memoryOf(pid: number | "self", file: string, field: string): number {
  const text = readFileSync(`/proc/${pid}/${file}`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);
}

async function snapshotOf(server: TestServer, files: number) {
  const itx = await server.itx("prj_many");
  const sandbox = await itx.sandboxes.get("/sandboxes/files").create({ instanceType: "standard-4" });
  const make = `import os
for index in range(${files}):
    folder = "/workspace/tree/%d" % (index // 100)
    if index % 100 == 0: os.makedirs(folder)
    with open("%s/%d" % (folder, index), "w") as file: file.write("file %d\\n" % index * 20)`;
  await sandbox.exec(`python3 - <<'END'\n${make}\nEND`);
  const began = performance.now();
  await sandbox.sleep();
  const slept = performance.now();
  const { stdout } = await sandbox.exec("find tree -type f | wc -l");
  const woken = performance.now();
  await sandbox.destroy();
  return { snapshotMs: slept - began, restoreMs: woken - slept, filesKept: Number(stdout) };
}

/** A snapshot of one file, out of a sandbox and into it again, over rpc. */
async function largeFile(server: TestServer, megabytes: number) {
  const itx = await server.itx("prj_many");
  const sandbox = await itx.sandboxes.get("/sandboxes/file").create({ instanceType: "standard-4" });
  const digest = (name: string) => `sha256sum /workspace/${name} | cut -c1-64`;
  const made = await sandbox.exec(`head -c ${megabytes}M /dev/urandom > /workspace/out; ${digest("out")}`);
  const runtime = server.server.engine.workerdPid ?? 0;
  const before = { host: process.memoryUsage().rss, runtime: memoryOf(runtime, "status", "VmRSS") };
  let peak = before.host;
  let runtimePeak = before.runtime;
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
    runtimePeak = Math.max(runtimePeak, memoryOf(runtime, "status", "VmRSS"));
  }, 50);
  await sandbox.sleep();
  const kept = await sandbox.exec(digest("out"));
  clearInterval(watch);
  await sandbox.destroy();
  return {
    grownMb: (peak - before.host) / 2 ** 20,
    runtimeGrownMb: (runtimePeak - before.runtime) / 1024,
    digestKept: kept.stdout === made.stdout,
  };
}

if (import.meta.main) {
  const size = { ...sizes[smoke ? "smoke" : process.env.FULL === "0" ? "ci" : "full"] };
  if (process.env.SANDBOXES !== undefined) size.sandboxes = Number(process.env.SANDBOXES);
  console.log(`size: ${JSON.stringify(size)}`);
  const { starts, ...outcome } = await many(size);
  console.log(
    `starts: median ${median(starts).toFixed(0)} ms, the slowest ${Math.max(...starts).toFixed(0)} ms`,
  );
  console.log(`RESULT ${JSON.stringify(outcome)}`);
  const { answering, startRatio, idleMb, filesKept, digestKept, grownMb, runtimeGrownMb } = outcome;
  const whole = answering === size.sandboxes && filesKept === size.files && digestKept;
  // Constant memory: what passes is eight times the larger bound.
  const holds = smoke
    ? whole
    : whole && startRatio <= 1.3 && idleMb <= 10 && grownMb <= 256 && runtimeGrownMb <= 256;
  process.exit(holds ? 0 : 1);
}
