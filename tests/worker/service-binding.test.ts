import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestWorker, type TestWorker } from "./support/worker.ts";

/** What a Worker with a service binding writes; each path is one try, answered as JSON. */
const script = `
  const tries = {
    async list(itx) { return itx.sandboxes.list(); },
    async missing(itx) { return itx.sandboxes.get("/sandboxes/none").exec("true"); },
    async badPath(itx) { return itx.sandboxes.get("/sandboxes/a/b").start(); },
    async secret(itx) {
      const secret = itx.secrets.get("/secrets/x");
      await secret.set({ material: "material-1", origins: ["https://a.example"] });
      return (await secret.describe()).version;
    },
    async tail(itx) {
      const stream = await itx.streams.get("/secrets/x").tail();
      const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
      const { value } = await reader.read();
      await reader.cancel();
      return JSON.parse(value.split("\\n")[0]).type;
    },
    async fetch(itx) { return (await itx.egress.fetch(new Request("https://a.example/"))).text(); },
  };
  export default {
    async fetch(request, env) {
      const name = new URL(request.url).pathname.slice(1);
      try {
        using itx = await env.ITX.itx();
        return Response.json({ value: await tries[name](itx) });
      } catch (error) {
        const { code, status, message, retryable, details } = error;
        return Response.json({ error: { code, status, message, retryable, details } });
      }
    },
  };
`;

let worker: TestWorker;
beforeAll(async () => {
  const { Response } = await import("miniflare");
  worker = await startTestWorker({
    neighbour: { script, projectId: "prj_bound" },
    internet: () => new Response("from outside"),
  });
});
afterAll(() => worker[Symbol.asyncDispose]());

test("another Worker uses the project's API, and meets errors with their codes", async () => {
  expect(await worker.neighbour("/list")).toEqual({ value: { sandboxes: [], cursor: null } });
  expect(await worker.neighbour("/missing")).toMatchObject({
    error: { code: "sandbox_not_found", status: 404, retryable: false, details: { path: "/sandboxes/none" } },
  });
  expect(await worker.neighbour("/badPath")).toMatchObject({ error: { code: "invalid_path" } });
  expect(await worker.neighbour("/secret")).toEqual({ value: 1 });
  expect(await worker.neighbour("/tail")).toEqual({ value: "events.iterate.com/secret/updated" });
  expect(await worker.neighbour("/fetch")).toEqual({ value: "from outside" });
});
