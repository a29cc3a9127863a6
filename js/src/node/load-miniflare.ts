import { SandboxError } from "../core/error.ts";

/** The package is optional, so that Workers do not install it; whoever runs a server needs it. */
export async function loadMiniflare(): Promise<typeof import("miniflare")> {
  try {
    return await import("miniflare");
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new SandboxError({
      code: "miniflare_missing",
      message: "the local runtime is not installed: run `npm install miniflare` beside iterate-sandboxes",
      details: {},
      status: 500,
      retryable: false,
    });
  }
}
