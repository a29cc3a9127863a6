/** Which request bodies the decision has to see, and reading them within a limit. All others stream past unread. */
import { shellError } from "../errors.ts";

export const templateHeader = "x-iterate-secret-template";
/** Beyond it a template is refused by the core; one byte more is enough for it to see that. */
const TEMPLATE_BYTES = 1024 * 1024 + 1;
/** The core takes no more in one call, arguments included. */
const GATEWAY_BYTES = 30 * 1024 * 1024;

/** How many bytes of the body to read before deciding; 0 for none. What is read too much costs time, never the answer. */
export function bodyLimit(request: Request): number {
  if (request.body === null) return 0;
  if (request.headers.has(templateHeader)) return TEMPLATE_BYTES;
  const isJson = (request.headers.get("content-type") ?? "").toLowerCase().includes("json");
  const host = new URL(request.url).hostname.replace(/\.$/, "");
  return isJson && host === "api.openai.com" ? GATEWAY_BYTES : 0;
}

/** @throws SandboxError `body_too_large` */
export async function readBody(body: ReadableStream<Uint8Array>, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > limit) {
      throw shellError(
        "body_too_large",
        `the body has more than ${limit} bytes, and has to be looked into; send less`,
        {
          limit,
        },
      );
    }
    chunks.push(chunk);
  }
  const whole = new Uint8Array(bytes);
  let position = 0;
  for (const chunk of chunks) {
    whole.set(chunk, position);
    position += chunk.byteLength;
  }
  return whole;
}
