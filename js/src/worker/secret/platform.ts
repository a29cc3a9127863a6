/** Secrets of the platform itself, from configuration; each has its own pin, and projects can use them and nothing else. */
import type { Core } from "../../core/types.ts";
import { shellError } from "../errors.ts";
import type { UsableSecret } from "./use.ts";

export const PLATFORM_PREFIX = "/platform/";

/**
 * @param key the path of a `getSecret({ platform })` placeholder
 * @throws SandboxError `secret_not_found` or `configuration_missing`
 */
export function platformSecret(core: Core, json: string | undefined, key: string): UsableSecret {
  const entry = entriesOf(json).get(key);
  if (entry === undefined) {
    throw shellError("secret_not_found", `the platform has no secret ${JSON.stringify(key)}`, { path: key });
  }
  const { material, origins } = entry;
  core.checkSecretMaterial(material);
  return { material, origins: core.checkSecretOrigins(origins) };
}

function entriesOf(json: string | undefined): Map<string, UsableSecret> {
  let value: unknown;
  try {
    value = JSON.parse(json ?? "{}");
  } catch {
    value = null;
  }
  if (typeof value !== "object" || value === null || !Object.values(value).every(isEntry)) {
    throw shellError(
      "configuration_missing",
      'PLATFORM_SECRETS must be JSON: { "<path>": { "material", "origins" } }',
      { variable: "PLATFORM_SECRETS" },
    );
  }
  return new Map(Object.entries(value));
}

function isEntry(value: unknown): value is UsableSecret {
  return typeof value === "object" && value !== null && "material" in value && "origins" in value;
}
