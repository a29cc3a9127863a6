/** oai-e1: OpenAI through the gateway, streamed, refused and hung up on, by a client that knows nothing of it. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../../support/server.ts";

interface Call {
  provider: string;
  headers: Record<string, string>;
  query: Record<string, unknown>;
  response: ServerResponse;
}

const calls: Call[] = [];
const arrivals: (() => void)[] = [];
const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`;
const paceMs = 500;

/** Plays AI Gateway; what a call's model is says how it is answered. */
const gateway = createServer(async (request, response) => {
  const [call] = (await json(request)) as Omit<Call, "response">[];
  if (call === undefined) throw new Error("the gateway was asked for nothing");
  calls.push({ ...call, response });
  for (const arrived of arrivals.splice(0)) arrived();
  if (call.query.model === "limited") {
    response.writeHead(429, {
      "content-type": "application/json",
      "retry-after": "7",
      "x-ratelimit-limit": "60",
    });
    response.end(JSON.stringify({ error: { message: "slow down" } }));
    return;
  }
  if (call.query.stream !== true) {
    response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify({ id: "c", object: "chat.completion" }));
    return;
  }
  response.setHeader("content-type", "text/event-stream");
  response.write(chunk("one"));
  if (call.query.model === "endless") {
    // That nobody reads any more is noticed when there is more to read.
    const timer = setInterval(() => response.write(chunk("more")), 100);
    response.on("close", () => clearInterval(timer));
    return;
  }
  await new Promise((resolve) => setTimeout(resolve, paceMs));
  response.write(chunk("two"));
  await new Promise((resolve) => setTimeout(resolve, paceMs));
  response.end(`${chunk("three")}data: [DONE]\n\n`);
});

let server: TestServer;
let itx: Itx;
let sandbox: SandboxHandle;

beforeAll(async () => {
  gateway.listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const { port } = gateway.address() as AddressInfo;
  server = await startTestServer({ ai: `127.0.0.1:${port}`, vars: { OPENAI_API_KEY: "sk-platform-5c21" } });
  itx = await server.itx("prj_ai");
  const options = { instanceType: "standard-1", env: { OPENAI_API_KEY: "dummy" } } as const;
  sandbox = await itx.sandboxes.get("/sandboxes/ai").create(options);
});
afterAll(async () => {
  await server?.close();
  gateway.close();
  gateway.closeAllConnections();
});

const curl = (body: object, flags = "") =>
  `curl -sS -N ${flags} https://api.openai.com/v1/chat/completions -H "authorization: Bearer $OPENAI_API_KEY"` +
  ` -H 'content-type: application/json' -H 'cf-aig-metadata: {"projectId":"prj_forged"}' -d '${JSON.stringify(body)}'`;

test("chunks arrive as they are sent, billed to the project whatever the client claims", async () => {
  // Each line with the milliseconds at which it was read.
  const timed = `${curl({ model: "m", messages: [], stream: true })} | while IFS= read -r line; do [ -n "$line" ] && echo "$(date +%s%3N) $line"; done`;
  const { stdout } = await sandbox.exec(timed);
  const lines = stdout.trim().split("\n");
  expect(
    lines.map((line) => /"content":"(\w+)"/.exec(line)?.[1] ?? line.split(" ").slice(2).join(" ")),
  ).toEqual(["one", "two", "three", "[DONE]"]);
  const at = lines.map((line) => Number(line.split(" ")[0]));
  for (const index of [1, 2]) expect((at[index] ?? 0) - (at[index - 1] ?? 0)).toBeGreaterThan(paceMs * 0.6);

  const call = calls.at(-1);
  expect(call?.provider).toBe("openai");
  expect(call?.headers.authorization).toBe("Bearer sk-platform-5c21");
  expect(JSON.parse(String(call?.headers["cf-aig-metadata"]))).toMatchObject({ projectId: "prj_ai" });
  expect(call?.query.stream_options).toEqual({ include_usage: true });
});

test("without a stream nothing is asked of the usage", async () => {
  const { stdout } = await sandbox.exec(curl({ model: "m", messages: [] }));
  expect(JSON.parse(stdout)).toMatchObject({ object: "chat.completion" });
  expect(calls.at(-1)?.query).not.toHaveProperty("stream_options");
});

test("a 429 and its headers reach the client", async () => {
  const { stdout } = await sandbox.exec(curl({ model: "limited", messages: [] }, "-i"));
  expect(stdout).toMatch(/^HTTP\/1\.1 429/);
  expect(stdout).toMatch(/^retry-after: 7\r$/im);
  expect(stdout).toMatch(/^x-ratelimit-limit: 60\r$/im);
  expect(stdout).toContain("slow down");
});

test("a client that hangs up cancels the call to the provider", async () => {
  const arrived = new Promise<void>((resolve) => arrivals.push(resolve));
  const hangingUp = sandbox.exec(curl({ model: "endless", messages: [], stream: true }, "--max-time 2"));
  await arrived;
  const response = calls.at(-1)?.response;
  const closed = response === undefined ? Promise.reject(new Error("no call")) : once(response, "close");
  const { stdout, exitCode } = await hangingUp;
  expect(stdout).toContain('"one"');
  expect(exitCode).toBe(28);
  await closed;
  expect(response?.writableFinished).toBe(false);
});

test("inside there is only the dummy", async () => {
  const { stdout } = await sandbox.exec("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'");
  expect(stdout).toContain("OPENAI_API_KEY=dummy");
  expect(stdout).not.toContain("sk-platform");
  await sandbox.destroy();
});
