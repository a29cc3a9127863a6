import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Response } from "miniflare";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx } from "../../js/src/node/itx.ts";
import { startTestWorker, type TestWorker, type TestWorkerOptions } from "./support/worker.ts";

const material = "live-material-4711-öß";
const oldKey = { id: "old", key: Buffer.alloc(32, 1).toString("base64") };
const newKey = { id: "new", key: Buffer.alloc(32, 2).toString("base64") };
const percent = encodeURIComponent(material);
const base64 = Buffer.from(material).toString("base64");

interface Seen {
  url: string;
  authorization: string | null;
  cookie: string | null;
  body: string;
}

let folder: string;
let worker: TestWorker;
const seen: Seen[] = [];

/** Answers with everything it was told, in every place and spelling that a server may use. */
const internet: TestWorkerOptions["internet"] = async (request) => {
  const { url, headers } = request;
  const body = await request.text();
  seen.push({ url, authorization: headers.get("authorization"), cookie: headers.get("cookie"), body });
  const { pathname } = new URL(url);
  if (pathname.startsWith("/redirect/")) {
    const location = decodeURIComponent(pathname.slice("/redirect/".length));
    return new Response(null, { status: 307, headers: { location } });
  }
  const basic = Buffer.from(`user:${material}`).toString("base64");
  return new Response(
    [material, base64, percent, basic, JSON.stringify({ material }), headers.get("authorization")].join("\n"),
    { headers: { "x-echo": `Bearer ${percent}`, "x-base64": base64, "content-type": "text/plain" } },
  );
};

const start = (keys: object[], vars: Record<string, string> = {}) =>
  startTestWorker({ internet, persist: folder, vars: { SECRETS_KEYS: JSON.stringify(keys), ...vars } });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "secrets-"));
  worker = await start([oldKey], {
    PLATFORM_SECRETS: JSON.stringify({
      "integrations.mail.key": { material, origins: ["https://mail.example"] },
    }),
  });
});
afterAll(async () => {
  await worker[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const holder = (path = "/secrets/api", field?: string) =>
  field === undefined ? `getSecret("${path}")` : `getSecret("${path}", { field: "${field}" })`;

async function project(name: string): Promise<Itx> {
  seen.length = 0;
  const itx = await worker.itx(name);
  await itx.secrets.get("/secrets/api").set({ material, origins: ["https://API.example:443"] });
  return itx;
}

function expectNothingLeaked(text: string): void {
  const basic = Buffer.from(`user:${material}`).toString("base64").slice(8, -4);
  for (const spelling of [material, base64, percent, basic]) expect(text).not.toContain(spelling);
}

test("a secret is described, rotated, listed and deleted, and never given back", async () => {
  const itx = await worker.itx("prj_life");
  const secret = itx.secrets.get("/secrets/team/api");
  await expect(secret.describe()).rejects.toMatchObject({ code: "secret_not_found", status: 404 });
  await expect(secret.rotate({ material: "x" })).rejects.toMatchObject({ code: "secret_not_found" });
  expect(await itx.secrets.list()).toEqual([]);
  const first = await secret.set({ material, origins: ["https://API.example:443", "https://api.example"] });
  expect(first).toMatchObject({ path: "/secrets/team/api", version: 1, origins: ["https://api.example"] });
  const second = await secret.rotate({ material: { key: `${material}-2` } });
  expect(second).toMatchObject({ version: 2, origins: ["https://api.example"], createdAt: first.createdAt });
  expect(await secret.describe()).toEqual(second);
  expect(await itx.secrets.list()).toEqual([second]);
  await secret.delete();
  await secret.delete();
  await expect(secret.describe()).rejects.toMatchObject({ code: "secret_not_found" });
  expect(await itx.secrets.list()).toEqual([]);
  expect((await secret.set({ material, origins: ["https://api.example"] })).version).toBe(3);
  const { events } = await itx.streams.get("/secrets/team/api").read();
  expect(events.map(({ type }) => type.split("/").at(-1))).toEqual([
    "updated",
    "updated",
    "deleted",
    "updated",
  ]);
  expectNothingLeaked(JSON.stringify([first, second, events]));
});

test("what cannot be a secret is refused before it is stored", async () => {
  const itx = await worker.itx("prj_refuse");
  const secret = itx.secrets.get("/secrets/bad");
  const origins = ["https://api.example"];
  const refusals: [object, string][] = [
    [{ material: "", origins }, "secret_material_empty"],
    [{ material: {}, origins }, "secret_material_empty"],
    [{ material: 7, origins }, "invalid_input"],
    [{ material: "m".repeat(70_000), origins }, "secret_material_too_large"],
    [{ material, origins: [] }, "secret_origin_invalid"],
    [{ material, origins: ["api.example"] }, "secret_origin_invalid"],
    [{ material, origins: ["https://*.example"] }, "secret_origin_invalid"],
    [{ material, origins, note: "x" }, "invalid_argument"],
  ];
  for (const [input, code] of refusals) {
    await expect(secret.set(input as never), JSON.stringify(input).slice(0, 80)).rejects.toMatchObject({
      code,
    });
  }
  await expect(secret.describe()).rejects.toMatchObject({ code: "secret_not_found" });
  expect(await itx.streams.get("/secrets/bad").read()).toEqual({ events: [], head: 0 });
});

test("a placeholder is filled on the way to its origin, and the answer holds none of it", async () => {
  const itx = await project("prj_use");
  const response = await itx.egress.fetch(
    new Request(`https://api.example/v1/${encodeURIComponent(holder())}`, {
      headers: { authorization: `Bearer ${holder()}`, cookie: `s=${holder()}; t=1` },
    }),
  );
  expect(response.status).toBe(200);
  expect(seen[0]?.url).toBe(`https://api.example/v1/${percent}`);
  expect(Buffer.from(seen[0]?.authorization ?? "", "latin1").toString("utf8")).toContain(
    "live-material-4711",
  );
  expectNothingLeaked((await response.text()) + JSON.stringify([...response.headers]));
  const { events } = await itx.streams.get("/egress").read();
  expect(events.map(({ payload }) => [payload.decision, payload.secretPath])).toEqual([
    ["secret", "/secrets/api"],
  ]);
  const own = await itx.streams.get("/secrets/api").read();
  expect(own.events.at(-1)).toMatchObject({
    type: "events.iterate.com/secret/used",
    payload: { host: "api.example" },
  });
  expectNothingLeaked(JSON.stringify([events, own]));
});

test("a JSON body is a template only where it says so", async () => {
  const itx = await project("prj_body");
  const send = async (headers: Record<string, string>) => {
    const body = JSON.stringify({ key: holder(), n: 12345678901234567890n.toString() });
    await itx.egress.fetch(
      new Request("https://api.example/", {
        method: "POST",
        headers: { "content-type": "application/json", "x-key": holder(), ...headers },
        body,
      }),
    );
    return seen.at(-1)?.body ?? "";
  };
  expect(await send({})).toContain("getSecret");
  expect(JSON.parse(await send({ "x-iterate-secret-template": "json" }))).toMatchObject({ key: material });
});

test("no other origin gets it, and the refusal names both", async () => {
  const itx = await project("prj_pin");
  for (const url of [
    "https://evil.example/",
    "http://api.example/",
    "https://api.example:8443/",
    "https://api.example./",
  ]) {
    const response = await itx.egress.fetch(new Request(url, { headers: { "x-key": holder() } }));
    const text = await response.text();
    expect([url, response.status]).toEqual([url, 403]);
    expect(text).toContain("https://api.example");
    expect(text).toContain(new URL(url).hostname);
    expectNothingLeaked(text);
  }
  for (const target of ["https://evil.example/", "http://api.example/", "https://api.example:8443/"]) {
    const url = `https://api.example/redirect/${encodeURIComponent(target)}`;
    const followed = itx.egress.fetch(new Request(url, { headers: { "x-key": holder() } }));
    await expect(followed).rejects.toMatchObject({ code: "secret_not_allowed_for_origin" });
  }
  expect(new Set(seen.map(({ url }) => new URL(url).origin))).toEqual(new Set(["https://api.example"]));
  const inside = `https://api.example/redirect/${encodeURIComponent("/end")}`;
  expect((await itx.egress.fetch(new Request(inside, { headers: { "x-key": holder() } }))).status).toBe(200);
});

test("what names no stored value is refused, and nothing leaves", async () => {
  const itx = await project("prj_missing");
  const refusals: [string, number][] = [
    [holder("/secrets/none"), 404],
    [holder("/secrets/api", "field"), 404],
    [`${holder()} ${holder("/secrets/none")}`, 400],
    [`getSecret(${holder()})`, 400],
    ['getSecret({ platform: "integrations.none" })', 404],
  ];
  for (const [value, status] of refusals) {
    const response = await itx.egress.fetch(
      new Request("https://api.example/", { headers: { "x-key": value } }),
    );
    expect([value, response.status]).toEqual([value, status]);
    expectNothingLeaked(await response.text());
  }
  const query = await itx.egress.fetch(new Request(`https://api.example/?k=${encodeURIComponent(holder())}`));
  expect(query.status).toBe(400);
  expect(seen).toEqual([]);
});

test("a secret of the platform goes to its own pin", async () => {
  const itx = await project("prj_platform");
  const platform = { headers: { "x-key": 'getSecret({ platform: "integrations.mail.key" })' } };
  expect((await itx.egress.fetch(new Request("https://mail.example/", platform))).status).toBe(200);
  expect((await itx.egress.fetch(new Request("https://api.example/", platform))).status).toBe(403);
  expect(seen.map(({ url }) => url)).toEqual(["https://mail.example/"]);
  expectNothingLeaked(JSON.stringify(await itx.streams.get("/egress").read()));
});

test("nothing of the material is on the disk, and sealed rows survive a rotation of keys", async () => {
  const itx = await project("prj_disk");
  await itx.egress.fetch(new Request("https://api.example/", { headers: { "x-key": holder() } }));
  await worker[Symbol.asyncDispose]();
  const bytes = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("");
  for (const spelling of ["live-material-4711", base64.slice(0, 16)]) expect(bytes).not.toContain(spelling);

  const use = async (keys: object[]) => {
    worker = await start(keys);
    const again = await worker.itx("prj_disk");
    const response = await again.egress.fetch(
      new Request("https://api.example/", { headers: { "x-key": holder() } }),
    );
    await worker[Symbol.asyncDispose]();
    return response.status;
  };
  expect(await use([newKey])).toBe(500);
  expect(await use([newKey, oldKey])).toBe(200);
  // That use has sealed it anew, so the old key can go.
  expect(await use([newKey])).toBe(200);
  worker = await start([newKey]);
});
