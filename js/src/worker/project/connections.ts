/** What a project is connected to. */
import type { Core } from "../../core/types.ts";
import { shellError, show } from "../errors.ts";

export interface Connection {
  kind: "github";
  name: string;
  /** Where its token is: the field `accessToken` of this secret. */
  secretPath: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** @throws SandboxError `connection_invalid` or `invalid_path` */
export function checkConnection(core: Core, value: unknown): Connection {
  const { kind, name, secretPath } = checkConnectionKey(value);
  if (typeof secretPath !== "string") {
    throw shellError(
      "connection_invalid",
      `secretPath is ${show(secretPath)}; it must be the path of a secret`,
    );
  }
  return { kind, name, secretPath: core.assertSecretPath(secretPath) };
}

export function checkConnectionKey(value: unknown): { kind: "github"; name: string; secretPath?: unknown } {
  const given: Record<string, unknown> = typeof value === "object" && value !== null ? { ...value } : {};
  if (given.kind !== "github") {
    throw shellError("connection_invalid", `kind is ${show(given.kind)}; the only kind is "github"`);
  }
  if (typeof given.name !== "string" || !NAME.test(given.name)) {
    throw shellError(
      "connection_invalid",
      `name is ${show(given.name)}; it must be 1 to 100 letters, digits, dots, dashes or underscores`,
    );
  }
  return { kind: given.kind, name: given.name, secretPath: given.secretPath };
}
