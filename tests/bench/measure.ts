/** Timing and the closing line that every benchmark prints. */
import { sized, smoke } from "../support/size.ts";

if (smoke) console.log("size: smoke, so the numbers mean nothing");

export function percentile(samples: readonly number[], fraction: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * fraction) - 1));
  return sorted[index] ?? Number.NaN;
}

export const median = (samples: readonly number[]) => percentile(samples, 0.5);

/** Milliseconds that one run takes. */
export async function time(action: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await action();
  return performance.now() - started;
}

/** Runs the contenders in turn, so that what else the machine does falls on each alike. Twice at the smallest size. */
export async function interleave(
  rounds: number,
  contenders: Record<string, (round: number) => Promise<number>>,
): Promise<Record<string, number[]>> {
  const samples: Record<string, number[]> = Object.fromEntries(
    Object.keys(contenders).map((name) => [name, []]),
  );
  for (let round = 0; round < sized(rounds, Math.min(rounds, 2)); round++)
    for (const [name, run] of Object.entries(contenders)) samples[name]?.push(await run(round));
  return samples;
}

const round = (value: number) => Math.round(value * 100) / 100;

/** The last line of a benchmark: one JSON object of numbers by name. */
export function printResult(values: Record<string, number>): void {
  console.log(
    `RESULT ${JSON.stringify(Object.fromEntries(Object.entries(values).map(([k, v]) => [k, round(v)])))}`,
  );
}
