/** `npm run bench`: from a sandbox's create to its first exec result, beside bubblewrap running `sh -c true`. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { startTestServer } from "../support/server.ts";
import { sized } from "../support/size.ts";
import { interleave, percentile, printResult, time } from "./measure.ts";

const RUNS = sized(50, 2);
const bwrap = [
  ...[
    "--unshare-all",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
  ],
  ...[
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "--tmpfs",
    "/tmp",
    "sh",
    "-c",
    "true",
  ],
];

await using server = await startTestServer();
const itx = await server.itx("prj_bench");

async function createToExec(name: string): Promise<number> {
  const sandbox = itx.sandboxes.get(`/sandboxes/${name}`);
  const ms = await time(async () => {
    await sandbox.create({ instanceType: "basic" });
    const { exitCode } = await sandbox.exec("true");
    if (exitCode !== 0) throw new Error(`exec true exited with ${exitCode}`);
  });
  await sandbox.destroy();
  return ms;
}

// The first life of a server loads code that every later one finds loaded.
await createToExec("warm-up");
const samples = await interleave(RUNS, {
  floor: () => time(() => promisify(execFile)("bwrap", bwrap)),
  create: (round) => createToExec(`run-${round}`),
});
const floor = percentile(samples.floor ?? [], 0.5);
const p50 = percentile(samples.create ?? [], 0.5);
const p99 = percentile(samples.create ?? [], 0.99);
console.log(`create to first exec over ${RUNS} runs: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
console.log(
  `bwrap … sh -c true, in turn with them: p50 ${floor.toFixed(1)} ms; at most 10 times that is wanted`,
);
printResult({ create_to_exec_p50_ms: p50, create_to_exec_p99_ms: p99, create_ratio: p50 / floor });
