/** SANDBOX_ENGINE: what plays the containers. */
import { SandboxError } from "../core/error.ts";

export type EngineMode = "embedded" | "docker" | "none";

const modes: readonly EngineMode[] = ["embedded", "docker", "none"];

/**
 * The mode that the environment asks for. `OS_SANDBOX_CONTAINER_LOCAL_DEV=true` means docker; embedded is the default on Linux.
 * @throws SandboxError `invalid_engine`, `engine_unsupported`
 */
export function engineMode(
  env: Readonly<Record<string, string | undefined>>,
  platform: string = process.platform,
): EngineMode {
  const asked = env.SANDBOX_ENGINE;
  const mode = modes.find((known) => known === asked);
  if (asked !== undefined && asked !== "" && mode === undefined) {
    throw refusal(
      "invalid_engine",
      `SANDBOX_ENGINE is ${JSON.stringify(asked)}; it must be embedded, docker or none`,
      {
        got: asked,
      },
    );
  }
  const chosen = mode ?? (env.OS_SANDBOX_CONTAINER_LOCAL_DEV === "true" ? "docker" : "embedded");
  if (chosen === "embedded" && platform !== "linux") {
    throw refusal(
      "engine_unsupported",
      `the embedded engine runs on Linux, this is ${platform}; set SANDBOX_ENGINE=docker to use Docker through wrangler, or SANDBOX_ENGINE=none to run without containers`,
      { platform },
    );
  }
  return chosen;
}

function refusal(code: string, message: string, details: Record<string, unknown>): SandboxError {
  return new SandboxError({ code, message, details, status: 400, retryable: false });
}
