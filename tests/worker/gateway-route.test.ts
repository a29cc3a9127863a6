import { Response } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callLoosely } from "../support/loosely.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

interface Run {
  gateway: string;
  provider: string;
  endpoint: string;
  headers: Record<string, string>;
  query: Record<string, unknown>;
  text: string;
}

let worker: TestWorker;
let bare: TestWorker;
const runs: Run[] = [];
const direct: string[] = [];
let answer: () => Response = () => Response.json({ id: "x" });

beforeAll(async () => {
  const internet = (request: { url: string }) => {
    direct.push(request.url);
    return new Response("direct");
  };
  bare = await startTestWorker({ internet });
  worker = await startTestWorker({
    internet,
    vars: { OPENAI_API_KEY: "platform-key", AI_GATEWAY_ID: "team" },
    gateway: async (request) => {
      const text = await request.text();
      const [run] = JSON.parse(text);
      runs.push({ ...run, gateway: new URL(request.url).pathname.slice(1), text });
      return answer();
    },
  });
});
afterAll(async () => {
  await bare[Symbol.asyncDispose]();
  await worker[Symbol.asyncDispose]();
});

const chat = (body: string, headers: Record<string, string> = {}) =>
  new Request("https://api.openai.com/v1/chat/completions?a=b", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer dummy", ...headers },
    body,
  });

test("a JSON call goes through the gateway with the platform's key", async () => {
  const itx = await worker.itx("prj_ai");
  const body = '{"model":"m","seed":12345678901234567890,"stream":true}';
  const response = await itx.egress.fetch(chat(body, { "cf-aig-metadata": "forged", "openai-beta": "x" }));
  expect(await response.json()).toEqual({ id: "x" });
  const [run] = runs;
  expect(run).toMatchObject({ gateway: "team", provider: "openai", endpoint: "chat/completions?a=b" });
  expect(run?.headers).toMatchObject({
    authorization: "Bearer platform-key",
    "openai-beta": "x",
    "cf-aig-collect-log": "true",
  });
  expect(JSON.parse(run?.headers["cf-aig-metadata"] ?? "{}")).toEqual({
    projectId: "prj_ai",
    source: "project-egress",
  });
  expect(run?.text).toContain("12345678901234567890");
  expect(run?.query.stream_options).toEqual({ include_usage: true });
  expect(direct).toEqual([]);
});

test("streams, statuses and headers pass as the gateway gives them", async () => {
  const itx = await worker.itx("prj_ai");
  answer = () =>
    new Response("slow down", { status: 429, headers: { "x-ratelimit-remaining": "0", "retry-after": "7" } });
  const limited = await itx.egress.fetch(chat("{}"));
  expect([limited.status, limited.headers.get("retry-after"), await limited.text()]).toEqual([
    429,
    "7",
    "slow down",
  ]);
  const encoder = new TextEncoder();
  let release: () => void = () => undefined;
  const first = new Promise<void>((resolve) => {
    release = resolve;
  });
  answer = () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          controller.enqueue(encoder.encode("data: 1\n\n"));
          await first;
          controller.enqueue(encoder.encode("data: 2\n\n"));
          controller.close();
        },
      }) as never,
      { headers: { "content-type": "text/event-stream" } },
    );
  const streamed = await itx.egress.fetch(chat("{}"));
  const reader = streamed.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("data: 1\n\n");
  release();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("data: 2\n\n");
});

test("a project can turn the gateway off, or let it answer from its cache", async () => {
  const itx = await worker.itx("prj_off");
  answer = () => Response.json({});
  expect(await itx.egress.getGateway()).toEqual({ enabled: true, cacheTtlSeconds: null });
  await itx.egress.setGateway({ enabled: true, cacheTtlSeconds: 600 });
  await itx.egress.fetch(chat('{"b":1,"a":2}') as never);
  await itx.egress.fetch(chat('{"a":2,"b":1}') as never);
  const keys = runs.slice(-2).map(({ headers }) => headers["cf-aig-cache-key"]);
  expect(keys[0]).toMatch(/^[0-9a-f]{64}$/);
  expect(keys[1]).toBe(keys[0]);
  await itx.egress.setGateway({ enabled: false });
  expect(await (await itx.egress.fetch(chat("{}") as never)).text()).toBe("direct");
  await expect(callLoosely(itx.egress, "setGateway", { enabled: "no" })).rejects.toMatchObject({
    code: "invalid_argument",
  });
});

test("without a gateway such a request is a 502 that names what is missing", async () => {
  const itx = await bare.itx("prj_bare");
  const response = await itx.egress.fetch(chat("{}"));
  expect(response.status).toBe(502);
  const text = await response.text();
  expect(text).toContain("AI binding");
  expect(text).toContain("OPENAI_API_KEY");
});
