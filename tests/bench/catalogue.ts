/** Claims, lookups and lists on catalogues of 10, 10,000 and 1,000,000 claims; no container is started. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sized } from "../support/size.ts";
import { startTestWorker } from "../worker/support/worker.ts";
import { interleave, median, printResult, time } from "./measure.ts";

const SIZES = process.env.CATALOGUE_SIZES?.split(",").map(Number) ?? [
  10,
  sized(10_000, 100),
  sized(1_000_000, 1_000),
];
const RUNS = sized(1_000, 2);
const BATCH = 2_000;

const persist = await mkdtemp(join(tmpdir(), "catalogue-"));
await using worker = await startTestWorker({ persist });
const call = <T>(size: number, method: string, ...values: unknown[]) =>
  worker.call<T>("CATALOGUE", `prj_${size}.iterate/sandboxes`, method, ...values);

for (const size of SIZES) {
  const ms = await time(async () => {
    for (let from = 0; from < size; from += BATCH) {
      await call(size, "testFill", from, Math.min(size, from + BATCH));
    }
  });
  console.log(`${size} claims made in ${(ms / 1_000).toFixed(1)} s`);
}

const contenders = Object.fromEntries(
  SIZES.flatMap((size) => [
    [
      `claim_${size}`,
      (round: number) =>
        time(() =>
          call(size, "claim", { path: `/sandboxes/new-${round}`, input: { instanceType: "basic" } }),
        ),
    ],
    [`lookup_${size}`, (round: number) => time(() => call(size, "lookup", `/sandboxes/new-${round}`))],
    [
      `list_${size}`,
      () => time(() => call(size, "list", { instanceType: "lite", status: "claimed", limit: 10 })),
    ],
  ]),
);
const samples = await interleave(RUNS, contenders);
const results = Object.fromEntries(
  Object.entries(samples).map(([name, values]) => [`${name}_ms_p50`, median(values)]),
);
printResult(results);
await rm(persist, { recursive: true });
