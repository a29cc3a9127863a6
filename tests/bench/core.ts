/**
 * `npm run bench:core`: the core through its public JavaScript face beside straightforward JavaScript (`reference/`, which passes
 * the same vectors), on the same inputs, in turn. Prints a table and ends with a line of JSON.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { connect } from "../../js/src/core/boundary.ts";
import { makeCore } from "../../js/src/core/core.ts";
import { headersWith, openAiRequest, policyOf, requestFor, streamOf } from "./core-inputs.ts";
import { median, printResult } from "./measure.ts";
import { type Contest, compete, type Outcome, printTable } from "./measure-core.ts";
import { resolveClaim } from "./reference/catalogue.ts";
import { rewriteOpenAiRequest } from "./reference/openai.ts";
import { scanPlaceholders } from "./reference/placeholders.ts";
import { ReferencePolicy } from "./reference/policy.ts";
import { foldProjection } from "./reference/projection.ts";

const bytes = readFileSync(createRequire(import.meta.url).resolve("#wasm/core.wasm"));

/** Compiled bytes to a core that has answered, as `loadCore` does it. */
async function load(): Promise<{ core: ReturnType<typeof makeCore>; compile: number; instantiate: number }> {
  const start = performance.now();
  const module: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [bytes]);
  const compiled = performance.now();
  const core = makeCore(await connect(module));
  core.durableObjectName({ projectId: "prj_1", path: "/" });
  return { core, compile: compiled - start, instantiate: performance.now() - compiled };
}

const loads = [await load()];
while (loads.length < 21) loads.push(await load());
const instantiate = median(loads.map((one) => one.instantiate));
const compile = median(loads.map((one) => one.compile));
const { core } = loads[loads.length - 1] ?? (await load());

const outcomes: Outcome[] = [];
function contest(...contests: Contest[]): Outcome[] {
  const found = compete(contests);
  outcomes.push(...found);
  return found;
}

function fold(count: number): Contest {
  const stream = streamOf(count);
  return {
    what: `fold of ${count.toLocaleString("en")} events`,
    wasm: () => core.foldProjection(stream),
    js: () => foldProjection(stream),
  };
}

function decision(count: number): Contest {
  const document = policyOf(count);
  const request = requestFor(count);
  const compiled = core.compileEgressPolicy(document);
  const reference = new ReferencePolicy(document);
  if (compiled.decide(request).kind !== "forward") throw new Error("the benchmark's request is refused");
  return {
    what: `decision by ${count.toLocaleString("en")} rules`,
    wasm: () => compiled.decide(request),
    js: () => reference.decide(request),
  };
}

function scan(what: string, authorization: string): Contest {
  const request = { url: "https://api.example.com/v1/items?page=3", headers: headersWith(authorization) };
  return {
    what: `placeholder scan, 20 headers, ${what}`,
    wasm: () => core.scanPlaceholders(request),
    js: () => scanPlaceholders(request),
  };
}

function openAi(what: string, size: number, stream: boolean): Contest {
  const request = openAiRequest(size, stream);
  return {
    what: `OpenAI check, ${what}`,
    wasm: () => core.rewriteOpenAiRequest(request),
    js: () => rewriteOpenAiRequest(request),
  };
}

const MEGABYTE = 1024 * 1024;
const claim = { path: "/sandboxes/main", claim: null, record: null, inFlight: false, input: {} };
const [foldBulk] = contest(fold(100_000));
const [foldSmall] = contest(fold(3));
const decisions = contest(...[10, 1_000, 100_000].map(decision));
const [scanSmall] = contest(scan("one names a secret", 'Bearer getSecret("/secrets/openai")'));
contest(scan("none", "Bearer abcdefghijklmnopqrstuvwxyz"), openAi("1 KB", 1024, false));
const [openAiLarge] = contest(openAi("5 MB", 5 * MEGABYTE, false));
contest(openAi("5 MB, to be changed", 5 * MEGABYTE, true));
contest({ what: "claim lookup", wasm: () => core.resolveClaim(claim), js: () => resolveClaim(claim) });

printTable(outcomes);
console.log(`compile ${compile.toFixed(1)} ms, instantiate ${instantiate.toFixed(2)} ms`);
printResult({
  fold_bulk: foldBulk?.ratio ?? 0,
  fold_small: foldSmall?.ratio ?? 0,
  policy_scale: (decisions[2]?.wasm ?? 0) / (decisions[0]?.wasm ?? 1),
  decide_small: decisions[1]?.ratio ?? 0,
  scan_small: scanSmall?.ratio ?? 0,
  openai_5mb: openAiLarge?.ratio ?? 0,
  wasm_gzip_kb: gzipSync(bytes, { level: 9 }).length / 1024,
  instantiate_ms: instantiate,
});
