/** The official `openai` package with a dummy key: it works unmodified, through the gateway, billed to the project. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleForNode } from "../support/bundle.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

interface Recorded {
  headers: Record<string, string>;
  body: Record<string, unknown>;
}
const recorded: Recorded[] = [];

/** Plays AI Gateway: records what it got, answers like the provider. */
const gateway = createServer(async (request, response) => {
  const [call] = (await json(request)) as {
    headers: Record<string, string>;
    query: Record<string, unknown>;
  }[];
  if (call === undefined) throw new Error("the gateway was asked for nothing");
  const body = call.query;
  recorded.push({ headers: call.headers, body });
  if (body.stream !== true) {
    response.setHeader("content-type", "application/json").setHeader("x-ratelimit-remaining-requests", "41");
    response.end(
      JSON.stringify({
        id: "c1",
        object: "chat.completion",
        choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
      }),
    );
    return;
  }
  response.setHeader("content-type", "text/event-stream");
  for (const content of ["hel", "lo"])
    response.write(
      `data: ${JSON.stringify({ id: "c1", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`,
    );
  response.end("data: [DONE]\n\n");
});

let server: TestServer;
beforeAll(async () => {
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  const { port } = gateway.address() as AddressInfo;
  server = await startTestServer({
    ai: `127.0.0.1:${port}`,
    vars: { OPENAI_API_KEY: "sk-platform-key-3f9a" },
  });
});
afterAll(async () => {
  await server?.close();
  gateway.close();
  gateway.closeAllConnections();
});

test("chat, streamed and not, reaches the gateway with the platform's key and the project's metadata", async () => {
  const itx = await server.itx("prj_openai");
  const sandbox = await itx.sandboxes.get("/sandboxes/llm").create({ instanceType: "standard-1" });
  const source = `import OpenAI from "openai";
    const client = new OpenAI({ apiKey: "dummy" });
    const messages = [{ role: "user", content: "hi 9007199254740993" }];
    const whole = await client.chat.completions.create({ model: "gpt-4o-mini", messages });
    let streamed = "";
    for await (const part of await client.chat.completions.create({ model: "gpt-4o-mini", messages, stream: true }))
      streamed += part.choices[0]?.delta?.content ?? "";
    console.log(JSON.stringify({ whole: whole.choices[0].message.content, streamed }));
    process.exit(0);`;
  await sandbox.writeFile("/workspace/chat.mjs", await bundleForNode(source));
  const { stdout, stderr, exitCode } = await sandbox.exec("node /workspace/chat.mjs", { timeout: 60_000 });
  expect(exitCode, stderr).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ whole: "hello", streamed: "hello" });

  expect(recorded).toHaveLength(2);
  for (const { headers } of recorded) {
    expect(headers.authorization).toBe("Bearer sk-platform-key-3f9a");
    expect(JSON.parse(String(headers["cf-aig-metadata"]))).toMatchObject({
      projectId: "prj_openai",
      source: "project-egress",
    });
  }
  expect(recorded[1]?.body.stream_options).toEqual({ include_usage: true });
  expect(stdout + stderr).not.toContain("sk-platform-key-3f9a");
  await sandbox.destroy();
});

test("without a gateway such a request gets a 502 that names what is missing", async () => {
  await using bare = await startTestServer();
  const itx = await bare.itx("prj_openai");
  const sandbox = await itx.sandboxes.get("/sandboxes/llm").create();
  const { stdout } = await sandbox.exec(
    `curl -s -w '\\n%{http_code}' https://api.openai.com/v1/chat/completions -H 'content-type: application/json' -d '{"model":"m","messages":[]}'`,
  );
  expect(stdout.trimEnd().split("\n").at(-1)).toBe("502");
  expect(stdout).toMatch(/AI|OPENAI_API_KEY/);
});
