/** A stand-in for Cloudflare's R2 management API over HTTP: it keeps buckets and rules, and answers with the API's envelopes. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface StoredRule {
  id: string;
  enabled?: boolean;
  conditions?: { prefix?: string };
  [key: string]: unknown;
}

export interface R2Api {
  url: string;
  /** Bucket name → its rules. Every bucket is born with the rule that R2 gives it. */
  buckets: Map<string, StoredRule[]>;
  /** `METHOD path` of every request, in order. */
  requests: string[];
  /** What the token may do. */
  permissions: Set<"read" | "edit">;
  close(): Promise<void>;
}

export const defaultRule: StoredRule = {
  id: "Default Multipart Abort Rule",
  enabled: true,
  conditions: { prefix: "" },
  abortMultipartUploadsTransition: { condition: { type: "Age", maxAge: 604_800 } },
};

export const account = "0123456789abcdef0123456789abcdef";
export const token = "test-token";

interface Answer {
  status: number;
  result?: unknown;
  error?: { code: number; message: string };
}

const refused = (status: number, code: number, message: string): Answer => ({
  status,
  error: { code, message },
});

export async function startR2Api(): Promise<R2Api> {
  const buckets = new Map<string, StoredRule[]>();
  const requests: string[] = [];
  const permissions = new Set<"read" | "edit">(["read", "edit"]);
  const server = createServer((request, response) => {
    void readBody(request).then((body) => {
      requests.push(`${request.method} ${request.url}`);
      send(response, answer(request, body, buckets, permissions));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    buckets,
    requests,
    permissions,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

function answer(
  request: IncomingMessage,
  body: string,
  buckets: Map<string, StoredRule[]>,
  permissions: Set<"read" | "edit">,
): Answer {
  const method = request.method ?? "GET";
  if (request.headers.authorization !== `Bearer ${token}`)
    return refused(401, 10001, "Unable to authenticate request");
  if (!permissions.has(method === "GET" ? "read" : "edit"))
    return refused(403, 10000, "Authentication error");
  const path = new RegExp(`^/accounts/${account}/r2/buckets(?:/([^/]+)(/lifecycle)?)?$`).exec(
    request.url ?? "",
  );
  if (path === null) return refused(404, 7003, "Could not route");
  const [, name, lifecycle] = path;
  if (method === "POST" && name === undefined) {
    const made = JSON.parse(body) as { name: string };
    if (buckets.has(made.name)) return refused(409, 10004, "The bucket you tried to create already exists.");
    buckets.set(made.name, [defaultRule]);
    return { status: 200, result: { name: made.name } };
  }
  const rules = buckets.get(name ?? "");
  if (name === undefined || rules === undefined)
    return refused(404, 10006, "The specified bucket does not exist.");
  if (method === "GET") return { status: 200, result: lifecycle === undefined ? { name } : { rules } };
  if (method === "PUT" && lifecycle !== undefined) {
    buckets.set(name, (JSON.parse(body) as { rules: StoredRule[] }).rules);
    return { status: 200, result: {} };
  }
  return refused(405, 10070, "Method not allowed");
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function send(response: ServerResponse, { status, result, error }: Answer): void {
  const body = {
    success: error === undefined,
    errors: error === undefined ? [] : [error],
    messages: [],
    result: result ?? null,
  };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
