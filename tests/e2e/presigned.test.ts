/** Snapshots by presigned URLs: the container itself carries the archive, through the door, to an S3-compatible endpoint of the bucket. */
import { request as httpRequest, type RequestListener } from "node:http";
import { AwsV4Signer } from "aws4fetch";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Itx, SandboxHandle } from "../../js/src/node/itx.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { startTlsUpstream, type Upstream } from "../support/upstream.ts";
import { buildTestWorker } from "../worker/support/test-worker.ts";

const keys = { accessKeyId: "AKIATESTS", secretAccessKey: "test-secret-Xw81" };
const endpoint = "account.r2.cloudflarestorage.com";
const variables = {
  R2_ACCESS_KEY_ID: keys.accessKeyId,
  R2_SECRET_ACCESS_KEY: keys.secretAccessKey,
  CLOUDFLARE_R2_ACCOUNT_ID: "account",
  BACKUP_BUCKET_NAME: "backups",
};

/** What reached the endpoint: the method, and whether it was signed in the query or in a header. */
const seen: string[] = [];

/** Signs the same request again, and compares. */
async function isSigned(
  method: string,
  url: URL,
  headers: Record<string, string | undefined>,
): Promise<boolean> {
  const given = url.searchParams.get("X-Amz-Signature");
  const unsigned = new URL(url);
  unsigned.searchParams.delete("X-Amz-Signature");
  const signQuery = given !== null;
  const datetime = (signQuery ? url.searchParams.get("X-Amz-Date") : headers["x-amz-date"]) ?? "";
  for (const name of ["Algorithm", "Credential", "Date", "SignedHeaders"])
    unsigned.searchParams.delete(`X-Amz-${name}`);
  const sent = {
    "x-amz-content-sha256": headers["x-amz-content-sha256"],
    "content-type": headers["content-type"],
  };
  const signer = new AwsV4Signer({
    ...keys,
    ...{ method, url: unsigned.href, datetime, signQuery, service: "s3", region: "auto" },
    ...(signQuery
      ? {}
      : {
          headers: Object.fromEntries(
            Object.entries(sent).filter(([, value]) => value !== undefined),
          ) as Record<string, string>,
        }),
  });
  const signed = await signer.sign();
  return signQuery
    ? signed.url.searchParams.get("X-Amz-Signature") === given
    : signed.headers.get("authorization") === headers.authorization;
}

/** R2's endpoint: checks the signature, and gives the request to the S3 API beside the bucket. */
const bucketEndpoint: RequestListener = async (incoming, response) => {
  const url = new URL(incoming.url ?? "/", `https://${endpoint}`);
  const method = incoming.method ?? "";
  if (!(await isSigned(method, url, incoming.headers as Record<string, string | undefined>))) {
    seen.push(`${method} refused`);
    response.writeHead(403).end("SignatureDoesNotMatch");
    return;
  }
  seen.push(`${method} ${url.searchParams.has("X-Amz-Signature") ? "presigned" : "signed"}`);
  const headers = { ...incoming.headers, host: "bucket" };
  const outgoing = httpRequest(`${server.url}/s3${incoming.url}`, { method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  incoming.pipe(outgoing);
};

let upstream: Upstream;
let server: TestServer;
let itx: Itx;

beforeAll(async () => {
  upstream = await startTlsUpstream([endpoint], bucketEndpoint);
  server = await startTestServer({
    workerDir: await buildTestWorker("tests/worker/s3-entry.ts"),
    upstreams: { [endpoint]: upstream.address },
    upstreamCa: upstream.caPem,
    vars: variables,
  });
  itx = await server.itx("prj_presigned");
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

async function sleepAndWake(sandbox: SandboxHandle, path: string): Promise<string[]> {
  seen.length = 0;
  const sum = (await sandbox.exec("sha256sum /workspace/data")).stdout;
  await sandbox.sleep();
  expect((await sandbox.exec("sha256sum /workspace/data")).stdout).toBe(sum);
  const { events } = await itx.streams.get(path).read({ limit: 1000 });
  return events.map(({ type, payload }) => `${type.split("/").at(-1)} ${payload.error ?? ""}`.trim());
}

test("a small archive goes up and comes back by one presigned URL each way", async () => {
  const path = "/sandboxes/small";
  const sandbox = await itx.sandboxes.get(path).create({ instanceType: "basic" });
  await sandbox.exec("head -c 100000 /dev/urandom > /workspace/data");
  const events = await sleepAndWake(sandbox, path);
  expect(seen).toEqual(["PUT presigned", "GET presigned"]);
  expect(events).toContain("backup-created");
  expect(events).not.toContainEqual(expect.stringMatching(/^backup-failed/));
  expect((await sandbox.exec("env; cat /proc/*/environ")).stdout).not.toContain(keys.secretAccessKey);
});

test("a large archive goes up in parts, and comes back in ranges", async () => {
  const path = "/sandboxes/large";
  const sandbox = await itx.sandboxes.get(path).create({ instanceType: "standard-1" });
  await sandbox.exec("head -c 30000000 /dev/urandom > /workspace/data");
  const events = await sleepAndWake(sandbox, path);
  expect(seen.filter((request) => request === "POST signed")).toHaveLength(2);
  expect(seen.filter((request) => request === "PUT presigned").length).toBeGreaterThan(1);
  expect(seen.filter((request) => request === "GET presigned").length).toBeGreaterThan(1);
  expect(events).not.toContainEqual(expect.stringMatching(/^backup-failed/));
});

test("where the policy refuses the endpoint, the binding carries the archive, and the stream says why", async () => {
  const path = "/sandboxes/refused";
  const sandbox = await itx.sandboxes.get(path).create({ instanceType: "basic" });
  await sandbox.exec("head -c 100000 /dev/urandom > /workspace/data");
  await itx.egress.setPolicy({
    default: "allow",
    rules: [{ id: "no-r2", action: "deny", hosts: [endpoint] }],
  });
  const events = await sleepAndWake(sandbox, path);
  await itx.egress.setPolicy({ default: "allow", rules: [] });
  expect(seen).toEqual([]);
  expect(events).toContainEqual(
    expect.stringMatching(/^backup-failed presigned transfer: .*403.*trying the bucket binding/s),
  );
  expect(events).toContain("backup-created");
  expect(events).toContain("workspace-restored");
});
