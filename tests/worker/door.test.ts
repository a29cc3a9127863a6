import { Response } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxEvent } from "../../js/src/node/itx.ts";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

interface Received {
  method: string;
  url: string;
  headers: [string, string][];
  body: string;
}

let worker: TestWorker;
const received: Received[] = [];
let answer: (received: Received) => Response = () => new Response("ok");

beforeAll(async () => {
  worker = await startTestWorker({
    internet: async (request) => {
      const { method, url } = request;
      const one = {
        method,
        url,
        headers: [...request.headers] as [string, string][],
        body: await request.text(),
      };
      received.push(one);
      return answer(one);
    },
  });
});
afterAll(() => worker[Symbol.asyncDispose]());

let projects = 0;
/** A project of its own for each test, and an internet that has seen nothing. */
async function fresh(): Promise<{ itx: Itx; project: string }> {
  projects += 1;
  received.length = 0;
  answer = () => new Response("ok");
  const project = `prj_door${projects}`;
  return { itx: await worker.itx(project), project };
}

async function audit(itx: Itx, entries: number): Promise<SandboxEvent["payload"][]> {
  await itx.streams.get("/egress").waitFor(entries, 5_000);
  return (await itx.streams.get("/egress").read({ limit: 1000 })).events.map(({ payload }) => payload);
}

test("by default public addresses are reached and private ones are not", async () => {
  const { itx } = await fresh();
  const response = await itx.egress.fetch(new Request("https://public.example/a?b=c"));
  expect([response.status, await response.text()]).toEqual([200, "ok"]);
  for (const url of [
    "http://127.0.0.1/",
    "http://169.254.169.254/latest",
    "http://[::1]/",
    "http://0x7f.1/",
    "http://localhost/",
  ]) {
    const denied = await itx.egress.fetch(new Request(url));
    expect([url, denied.status]).toEqual([url, 403]);
    expect(await denied.json()).toMatchObject({ code: expect.any(String), detail: expect.any(String) });
  }
  expect(received.map(({ url }) => url)).toEqual(["https://public.example/a?b=c"]);
});

test("the policy decides by its first matching rule, and test() tells which", async () => {
  const { itx } = await fresh();
  expect(await itx.egress.getPolicy()).toEqual({ default: "allow", rules: [] });
  const policy = {
    default: "deny" as const,
    rules: [
      { id: "no-admin", action: "deny" as const, hosts: ["api.example"], paths: ["/admin/*"] },
      { id: "api", action: "allow" as const, hosts: ["api.example"], schemes: ["https"] },
    ],
  };
  await itx.egress.setPolicy(policy);
  expect(await itx.egress.getPolicy()).toEqual(policy);
  expect(await itx.egress.test({ url: "https://api.example/x" })).toMatchObject({
    kind: "forward",
    rule: "api",
  });
  expect(await itx.egress.test({ url: "https://api.example/admin/x" })).toMatchObject({
    kind: "deny",
    rule: "no-admin",
  });
  expect(await itx.egress.test({ url: "http://api.example/x" })).toMatchObject({ kind: "deny", rule: null });
  expect((await itx.egress.fetch(new Request("https://api.example/admin/x"))).status).toBe(403);
  expect(received).toEqual([]);
  await expect(
    itx.egress.setPolicy({ default: "allow", rules: [{ id: "x", action: "allow", host: ["a"] } as never] }),
  ).rejects.toMatchObject({ code: "invalid_policy" });
  expect(await itx.egress.getPolicy()).toEqual(policy);
});

test("every decision is on the stream once, without query or body", async () => {
  const { itx } = await fresh();
  await itx.egress.setPolicy({
    default: "allow",
    rules: [{ id: "no", action: "deny", hosts: ["no.example"] }],
  });
  await itx.egress.fetch(
    new Request("https://yes.example/a?token=hidden", { method: "POST", body: "hidden" }),
  );
  await itx.egress.fetch(new Request("https://no.example:8443/b?token=hidden"));
  await itx.egress.test({ url: "https://yes.example/" });
  const entries = await audit(itx, 2);
  expect(entries).toEqual([
    { method: "POST", scheme: "https", host: "yes.example", port: 443, path: "/a", decision: "forward" },
    {
      method: "GET",
      scheme: "https",
      host: "no.example",
      port: 8443,
      path: "/b",
      decision: "deny",
      ruleId: "no",
    },
  ]);
});

test("headers of a connection, ours and the platform's do not go on, the rest does", async () => {
  const { itx } = await fresh();
  await itx.egress.fetch(
    new Request("https://public.example/", {
      headers: {
        "x-iterate-caller": "forged",
        "x-iterate-connection": "{}",
        "cf-ray": "forged",
        "x-mine": "1",
      },
    }),
  );
  const names = received[0]?.headers.map(([name]) => name) ?? [];
  expect(names).toContain("x-mine");
  expect(names.filter((name) => name.startsWith("x-iterate-") || name === "cf-ray")).toEqual([]);
});

test("redirects are followed hop by hop, each decided anew, or handed back", async () => {
  const { itx } = await fresh();
  await itx.egress.setPolicy({
    default: "allow",
    rules: [{ id: "no", action: "deny", hosts: ["no.example"] }],
  });
  answer = ({ url }) => {
    const { pathname } = new URL(url);
    if (pathname === "/to-get") return new Response(null, { status: 303, headers: { location: "/end" } });
    if (pathname === "/to-post")
      return new Response(null, { status: 307, headers: { location: "https://b.example/end" } });
    if (pathname === "/to-no")
      return new Response(null, { status: 302, headers: { location: "https://no.example/" } });
    if (pathname === "/loop") return new Response(null, { status: 302, headers: { location: "/loop" } });
    return new Response("end");
  };
  const post = { method: "POST", body: "payload" };
  expect(await (await itx.egress.fetch(new Request("https://a.example/to-get", post))).text()).toBe("end");
  expect(received.at(-1)).toMatchObject({ method: "GET", url: "https://a.example/end", body: "" });
  expect(await (await itx.egress.fetch(new Request("https://a.example/to-post", post))).text()).toBe("end");
  expect(received.at(-1)).toMatchObject({ method: "POST", url: "https://b.example/end", body: "payload" });
  expect((await itx.egress.fetch(new Request("https://a.example/to-no"))).status).toBe(403);
  const manual = await itx.egress.fetch(new Request("https://a.example/to-get", { redirect: "manual" }));
  expect([manual.status, manual.headers.get("location")]).toEqual([303, "/end"]);
  await expect(itx.egress.fetch(new Request("https://a.example/loop"))).rejects.toMatchObject({
    code: "redirect_limit",
  });
});

test("a target that cannot be reached is a 502 that says so", async () => {
  const { itx } = await fresh();
  answer = () => {
    throw new Error("no route");
  };
  const response = await itx.egress.fetch(new Request("https://gone.example/"));
  expect(response.status).toBeGreaterThanOrEqual(500);
});

test("wrong requests are told apart from failing ones", async () => {
  const { itx } = await fresh();
  await expect(itx.egress.fetch("nonsense" as never)).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(itx.egress.fetch(7 as never)).rejects.toMatchObject({ code: "invalid_argument" });
  await expect(itx.egress.test({} as never)).rejects.toMatchObject({ code: "invalid_argument" });
});
