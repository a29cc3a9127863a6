/** The core beside plain JavaScript, in turn and in one process. */
import { sized } from "../support/size.ts";
import { median } from "./measure.ts";

export interface Contest {
  what: string;
  wasm: () => unknown;
  /** Absent where only the core is timed. */
  js?: () => unknown;
}

export interface Outcome {
  what: string;
  /** Microseconds of one call, medians. */
  wasm: number;
  js: number | undefined;
  ratio: number | undefined;
}

const ROUNDS = sized(9, 1);
/** Long enough for the clock, short enough that both meet the same machine. */
const ROUND_MS = sized(60, 1);
/** Code that runs seldom is compiled late, wasm more so than JavaScript. */
const WARM_UP_MS = sized(1500, 1);

function microseconds(work: () => unknown, calls: number): number {
  const start = performance.now();
  for (let i = 0; i < calls; i++) work();
  return ((performance.now() - start) * 1000) / calls;
}

/** How many calls fill a round. Both have been compiled as well as they ever will be by then. */
function callsOf(work: () => unknown): number {
  const start = performance.now();
  while (performance.now() - start < WARM_UP_MS) work();
  let calls = 1;
  while (microseconds(work, calls) * calls < (ROUND_MS / 2) * 1000) calls *= 2;
  return calls;
}

/** All of them in turn, round by round: what else the machine does falls on each alike. */
export function compete(contests: readonly Contest[]): Outcome[] {
  const contenders = contests.flatMap(({ wasm, js }) => (js === undefined ? [wasm] : [wasm, js]));
  const calls = contenders.map(callsOf);
  const times: number[][] = contenders.map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    contenders.forEach((work, index) => {
      times[index]?.push(microseconds(work, calls[index] ?? 1));
    });
  }
  const medians = times.map(median);
  return contests.map(({ what, js }) => {
    const [core = Number.NaN, plain] = medians.splice(0, js === undefined ? 1 : 2);
    return { what, wasm: core, js: plain, ratio: plain === undefined ? undefined : plain / core };
  });
}

const micros = (value: number) =>
  value >= 10_000 ? `${(value / 1000).toFixed(1)} ms` : `${value.toFixed(2)} us`;

export function printTable(outcomes: readonly Outcome[]): void {
  console.log(`${"".padEnd(44)}${"core".padStart(12)}${"JavaScript".padStart(12)}${"ratio".padStart(8)}`);
  for (const { what, wasm, js, ratio } of outcomes) {
    const plain = js === undefined ? "" : micros(js);
    const times = ratio === undefined ? "" : ratio.toFixed(2);
    console.log(`${what.padEnd(44)}${micros(wasm).padStart(12)}${plain.padStart(12)}${times.padStart(8)}`);
  }
}
