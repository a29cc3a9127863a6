/** Speed and size of the core beside plain JavaScript that does the same. Ends with a line of JSON for machines. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { connect } from "../../js/src/core/boundary.ts";
import { makeCore } from "../../js/src/core/core.ts";
import type { EgressPolicyDocument, FoldableEvent } from "../../js/src/core/types.ts";
import { jsDurableObjectName, jsFold, jsIsOpenAiBody } from "./javascript.ts";

const wasm = readFileSync(createRequire(import.meta.url).resolve("#wasm/core.wasm"));
const MAX_GZIP_BYTES = 160 * 1024;

/** The fastest of several runs, in milliseconds: what the machine can do when nothing disturbs. */
function best(runs: number, work: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs; i++) {
    const start = performance.now();
    work();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

function streamOf(count: number): Uint8Array {
  const type = (name: string) => `events.iterate.com/sandbox/${name}`;
  const makers: ((i: number) => Omit<FoldableEvent, "offset">)[] = [
    () => ({ type: type("start-requested"), payload: {} }),
    () => ({ type: type("started"), payload: {} }),
    (i) => ({
      type: type("configured"),
      payload: { env: { PATH_EXTRA: `/opt/tool-${i % 7}/bin`, STAGE: "dev" } },
    }),
    (i) => ({ type: type("backup-created"), payload: { backupId: `backup-${i}` } }),
    () => ({ type: type("stopped"), payload: {} }),
    (i) => ({ type: type("backup-failed"), payload: { error: `upload ${i} was refused by the bucket` } }),
  ];
  const events = Array.from({ length: count }, (_, i) => ({
    offset: i + 1,
    idempotencyKey: null,
    createdAt: new Date(1_800_000_000_000 + i * 1000).toISOString(),
    ...(i === 0
      ? { type: type("created"), payload: { config: { instanceType: "basic" } } }
      : makers[i % makers.length]?.(i)),
  }));
  return new TextEncoder().encode(JSON.stringify(events));
}

function openAiBody(bytes: number): Uint8Array {
  const turn = { role: "user", content: "What is the capital of France? ".repeat(20) };
  const messages = Array.from({ length: Math.ceil(bytes / JSON.stringify(turn).length) }, () => turn);
  return new TextEncoder().encode(JSON.stringify({ model: "gpt-5", stream: true, messages }));
}

const policy: EgressPolicyDocument = {
  default: "deny",
  rules: Array.from({ length: 10 }, (_, i) => ({
    id: `rule-${i}`,
    action: "allow" as const,
    hosts: [`api-${i}.example.com`, `*.zone-${i}.example.org`],
    schemes: ["https"],
    methods: ["GET", "POST"],
  })),
};

const compiled: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [wasm]);
const instantiateStart = performance.now();
const core = makeCore(await connect(compiled));
core.limits();
const instantiateMs = performance.now() - instantiateStart;
const compileMs = best(3, () => Reflect.construct(WebAssembly.Module, [wasm]));

const stream = streamOf(100_000);
const decoder = new TextDecoder();
const foldWasm = best(7, () => core.foldProjection(stream));
const foldJs = best(7, () => jsFold(JSON.parse(decoder.decode(stream))));

const body = openAiBody(5 * 1024 * 1024);
const request = {
  method: "POST",
  url: "https://api.openai.com/v1/chat/completions",
  headers: [["content-type", "application/json"]] as [string, string][],
  gateway: { apiKey: "key", cacheTtlSeconds: null, metadata: {} },
};
const openAiWasm = best(7, () => core.rewriteOpenAiRequest({ ...request, body }));
const openAiJs = best(7, () => jsIsOpenAiBody(decoder.decode(body)));

const door = core.compileEgressPolicy(policy);
const decisions = 100_000;
const targets = Array.from({ length: 20 }, (_, i) => ({
  method: "GET",
  url: `https://api-${i}.example.com/v1/items?page=${i}`,
  headers: [["accept", "application/json"]] as [string, string][],
  webSocket: false,
  gateway: null,
}));
const decideMs = best(2, () => {
  for (let i = 0; i < decisions; i++) {
    const target = targets[i % targets.length];
    if (target !== undefined) door.decide(target);
  }
});
const rulesAt = (count: number) => {
  const rules = Array.from({ length: count }, (_, i) => ({
    id: `r${i}`,
    action: "allow" as const,
    hosts: [`h${i}.example.com`],
  }));
  const large = core.compileEgressPolicy({ default: "deny", rules });
  const url = `https://h${count - 1}.example.com/`;
  return best(3, () => {
    for (let i = 0; i < 5000; i++)
      large.decide({ method: "GET", url, headers: [], webSocket: false, gateway: null });
  });
};

const names = 100_000;
const identity = { projectId: "prj_1", path: "/sandboxes/main" };
const nameWasm = best(3, () => {
  for (let i = 0; i < names; i++) core.durableObjectName(identity);
});
const nameJs = best(3, () => {
  for (let i = 0; i < names; i++) jsDurableObjectName(identity);
});

const megabytes = (bytes: Uint8Array, ms: number) => Math.round(bytes.length / 1e6 / (ms / 1e3));
const round = (value: number) => Math.round(value * 100) / 100;
const gzipBytes = gzipSync(wasm, { level: 9 }).length;
const result = {
  foldMBps: megabytes(stream, foldWasm),
  foldJsMBps: megabytes(stream, foldJs),
  foldSpeedup: round(foldJs / foldWasm),
  openAiMs: round(openAiWasm),
  openAiJsMs: round(openAiJs),
  openAiSpeedup: round(openAiJs / openAiWasm),
  decisionMicros: round((decideMs * 1000) / decisions),
  rules1000To10: round(rulesAt(1000) / rulesAt(10)),
  nameMicros: round((nameWasm * 1000) / names),
  nameJsMicros: round((nameJs * 1000) / names),
  wasmBytes: wasm.length,
  wasmGzipBytes: gzipBytes,
  compileMs: round(compileMs),
  instantiateMs: round(instantiateMs),
};
for (const [name, value] of Object.entries(result)) console.log(`${name.padEnd(16)} ${value}`);
console.log(`RESULT ${JSON.stringify(result)}`);
if (gzipBytes > MAX_GZIP_BYTES) {
  console.error(`core.wasm has ${gzipBytes} bytes gzipped; the limit is ${MAX_GZIP_BYTES}`);
  process.exitCode = 1;
}
if (result.foldSpeedup < 3) {
  console.error(`the fold is ${result.foldSpeedup} times as fast as JavaScript; at least 3 is wanted`);
  process.exitCode = 1;
}
