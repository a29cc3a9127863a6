/** What the benchmarks of the core are asked: like what callers of its public face have. */
import type { EgressPolicyDocument, EgressRequest, FoldableEvent } from "../../js/src/core/types.ts";

const encoder = new TextEncoder();

const type = (name: string) => `events.iterate.com/sandbox/${name}`;
const MAKERS: ((i: number) => Omit<FoldableEvent, "offset">)[] = [
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

/** A stream's events as it stores and sends them: a JSON array, in UTF-8. */
export function streamOf(count: number): Uint8Array {
  const events = Array.from({ length: count }, (_, i) => ({
    offset: i + 1,
    idempotencyKey: null,
    createdAt: new Date(1_800_000_000_000 + i * 1000).toISOString(),
    ...(i === 0
      ? { type: type("created"), payload: { config: { instanceType: "basic" } } }
      : MAKERS[i % MAKERS.length]?.(i)),
  }));
  return encoder.encode(JSON.stringify(events));
}

export function openAiRequest(bytes: number, stream: boolean) {
  const turn = { role: "user", content: "What is the capital of France? ".repeat(20) };
  const messages = Array.from({ length: Math.ceil(bytes / JSON.stringify(turn).length) }, () => turn);
  const body = { model: "gpt-5", ...(stream ? { stream: true } : {}), messages };
  return {
    method: "POST",
    url: "https://api.openai.com/v1/chat/completions",
    headers: [
      ["content-type", "application/json"],
      ["authorization", "Bearer unused"],
    ] as [string, string][],
    gateway: { apiKey: "key", cacheTtlSeconds: null, metadata: { projectId: "prj_1" } },
    body: encoder.encode(JSON.stringify(body)),
  };
}

export function policyOf(count: number): EgressPolicyDocument {
  const rules = Array.from({ length: count }, (_, i) => ({
    id: `rule-${i}`,
    action: i % 10 === 9 ? ("deny" as const) : ("allow" as const),
    hosts: i % 3 === 0 ? [`*.zone-${i}.example.org`] : [`api-${i}.example.com`],
    schemes: ["https"],
    ...(i % 2 === 0 ? { methods: ["GET", "POST"] } : {}),
  }));
  return { default: "deny", rules };
}

/** What a command-line client sends, to a host that the middle rule allows. */
export function requestFor(count: number): EgressRequest {
  const middle = count / 2 - ((count / 2) % 30) + 2;
  return {
    method: "GET",
    url: `https://api-${middle}.example.com/v1/items?page=3`,
    headers: [
      ["accept", "*/*"],
      ["user-agent", "curl/8.5.0"],
      ["authorization", "Bearer abcdefghijklmnopqrstuvwxyz"],
    ],
    webSocket: false,
    gateway: null,
  };
}

/** Twenty headers of a browser-like client; one of them names a secret where that is asked for. */
export function headersWith(authorization: string): [string, string][] {
  return [
    ["accept", "application/json, text/plain;q=0.9, */*;q=0.8"],
    ["accept-encoding", "gzip, deflate, br, zstd"],
    ["accept-language", "en-GB,en;q=0.9,de;q=0.8"],
    ["authorization", authorization],
    ["cache-control", "no-cache"],
    ["connection", "keep-alive"],
    ["content-length", "2048"],
    ["content-type", "application/json"],
    ["cookie", "session=5f2b8c1e9d; theme=dark; _ga=GA1.2.1234567890.1700000000"],
    ["host", "api.example.com"],
    ["idempotency-key", "8e03978e-40d5-43e8-bc93-6894a57f9324"],
    ["origin", "https://app.example.com"],
    ["pragma", "no-cache"],
    ["referer", "https://app.example.com/projects/1/sandboxes"],
    ["sec-fetch-dest", "empty"],
    ["sec-fetch-mode", "cors"],
    ["traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
    ["user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/139.0 Safari/537.36"],
    ["x-request-id", "req_01JABCDEFGHJKMNPQRSTVWXYZ"],
    ["x-stainless-lang", "js"],
  ];
}
