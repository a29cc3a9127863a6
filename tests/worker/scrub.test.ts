import { expect, test } from "vitest";
import { Scrubber } from "../../js/src/worker/secret/scrub.ts";

const secret = "s3cr3t-value";

function streamOf(chunks: readonly string[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(encoder.encode(chunk));
      controller.close();
    },
  });
}

async function scrub(scrubber: Scrubber, chunks: readonly string[]): Promise<string> {
  return new Response(scrubber.body(streamOf(chunks))).text();
}

test("a value is blotted out wherever the chunks are cut", async () => {
  const scrubber = new Scrubber([secret]);
  const body = `before ${secret} between ${secret}${secret} after`;
  const expected = body.replaceAll(secret, "*".repeat(secret.length));
  for (let cut = 0; cut <= body.length; cut += 1) {
    expect(await scrub(scrubber, [body.slice(0, cut), body.slice(cut)])).toBe(expected);
  }
  expect(await scrub(scrubber, [...body])).toBe(expected);
});

test("values that overlap or stand in one another are blotted out as a whole", async () => {
  const scrubber = new Scrubber(["abcdef", "defghi", "cde"]);
  expect(await scrub(scrubber, [..."xabcdefghiy"])).toBe("x*********y");
  expect(await scrub(new Scrubber(["aaaaaa"]), ["a".repeat(500), "a".repeat(500)])).toBe("*".repeat(1000));
});

test("only what may begin a value is held back", async () => {
  const scrubber = new Scrubber([secret]);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const reader = scrubber.body(readable).getReader();
  const encoder = new TextEncoder();
  void writer.write(encoder.encode("data: one\n\n"));
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: one\n\n");
  void writer.write(encoder.encode("data: s3cr"));
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: ");
  void writer.write(encoder.encode("umb"));
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("s3crumb");
  await writer.close();
});

test("headers and status texts are scrubbed, bytes that are not text pass", async () => {
  const scrubber = new Scrubber([secret, "czNjcjN0LXZhbHVl"]);
  const headers = scrubber.headers(
    new Headers({ "x-echo": `Bearer ${secret}`, "x-basic": "czNjcjN0LXZhbHVl" }),
  );
  expect(headers.get("x-echo")).toBe(`Bearer ${"*".repeat(secret.length)}`);
  expect(headers.get("x-basic")).toBe("*".repeat(16));
  expect(scrubber.text("fine")).toBe("fine");
  const bytes = new Uint8Array([0, 255, 128, 10, 13, 0]);
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
  expect(new Uint8Array(await new Response(scrubber.body(source)).arrayBuffer())).toEqual(bytes);
});
