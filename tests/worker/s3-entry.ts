/** The Worker as it is built, with an S3 API over its bucket at `/s3/<bucket>/<key>`: what R2's own endpoint is to R2's binding. */
import type { WorkerEnv } from "../../js/src/worker/env.ts";
import worker from "../../js/src/worker/index.ts";

export * from "../../js/src/worker/index.ts";

const tested: ExportedHandler<WorkerEnv> = {
  async fetch(request, env, ctx) {
    const key = /^\/s3\/[^/]+\/(.+)$/.exec(new URL(request.url).pathname)?.[1];
    if (key !== undefined && env.BACKUP_BUCKET !== undefined) {
      return s3(request, env.BACKUP_BUCKET, decodeURIComponent(key));
    }
    if (worker.fetch === undefined) throw new TypeError("the Worker has no fetch handler");
    return worker.fetch(request, env, ctx);
  },
};

async function s3(request: Request, bucket: R2Bucket, key: string): Promise<Response> {
  const { searchParams } = new URL(request.url);
  const uploadId = searchParams.get("uploadId");
  if (request.method === "POST" && searchParams.has("uploads")) {
    const upload = await bucket.createMultipartUpload(key);
    return new Response(
      `<InitiateMultipartUploadResult><UploadId>${upload.uploadId}</UploadId></InitiateMultipartUploadResult>`,
    );
  }
  if (uploadId !== null) return multipart(request, bucket.resumeMultipartUpload(key, uploadId), searchParams);
  if (request.method === "PUT") {
    const object = await bucket.put(key, request.body);
    return new Response(null, { headers: { etag: object?.httpEtag ?? "" } });
  }
  if (request.method === "GET") return get(request, bucket, key);
  return new Response("NotImplemented", { status: 501 });
}

async function multipart(
  request: Request,
  upload: R2MultipartUpload,
  searchParams: URLSearchParams,
): Promise<Response> {
  if (request.method === "PUT") {
    const part = await upload.uploadPart(Number(searchParams.get("partNumber")), await request.arrayBuffer());
    return new Response(null, { headers: { etag: `"${part.etag}"` } });
  }
  if (request.method === "DELETE") {
    await upload.abort();
    return new Response(null, { status: 204 });
  }
  const listed = (await request.text()).matchAll(
    /<PartNumber>(\d+)<\/PartNumber><ETag>"?([^"<]+)"?<\/ETag>/g,
  );
  const parts = [...listed].map(([, partNumber, etag]) => ({
    partNumber: Number(partNumber),
    etag: etag ?? "",
  }));
  await upload.complete(parts);
  return new Response("<CompleteMultipartUploadResult/>");
}

async function get(request: Request, bucket: R2Bucket, key: string): Promise<Response> {
  const object = await bucket.get(key, { range: request.headers });
  if (object === null) return new Response("NoSuchKey", { status: 404 });
  const partial = request.headers.has("range");
  return new Response(object.body, { status: partial ? 206 : 200, headers: { etag: object.httpEtag } });
}

export default tested;
