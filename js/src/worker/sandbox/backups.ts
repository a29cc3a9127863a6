/** Backups that a caller takes or restores on purpose: they travel as the sandbox's snapshots do, and stay within their project. */
import type { Core } from "../../core/types.ts";
import type { SandboxIdentity } from "../../core/types-lifecycle.ts";

/** The variables that decide whether archives travel by presigned URLs. */
export interface TransferVariables {
  R2_ACCESS_KEY_ID?: string;
  R2_SECRET_ACCESS_KEY?: string;
  CLOUDFLARE_R2_ACCOUNT_ID?: string;
  BACKUP_BUCKET_NAME?: string;
  BACKUP_BUCKET_ENDPOINT?: string;
}

const TRANSFER_VARIABLES = [
  "R2_ACCESS_KEY_ID",
  "R2_SECRET_ACCESS_KEY",
  "CLOUDFLARE_R2_ACCOUNT_ID",
  "BACKUP_BUCKET_NAME",
  "BACKUP_BUCKET_ENDPOINT",
] as const;

export function transferVariables(variables: TransferVariables): Record<string, string> {
  const given: Record<string, string> = {};
  for (const key of TRANSFER_VARIABLES) {
    const value = variables[key];
    if (value !== undefined) given[key] = value;
  }
  return given;
}

/** The options of the SDK that a caller does not choose: whose backup it is, and how it travels. */
export function backupModeOf(
  core: Core,
  identity: SandboxIdentity,
  variables: TransferVariables,
): { name?: string; localBucket?: boolean } {
  const env = transferVariables(variables);
  const manifest = core.snapshotManifest({ identity, now: Date.now(), id: crypto.randomUUID(), env });
  const { name, localBucket } = core.backupOptions(manifest);
  return { ...(name !== undefined && { name }), ...(localBucket === true && { localBucket }) };
}

/** @throws SandboxError `backup_not_found` for an id that is not one of this project's */
export async function assertOwnBackup(
  core: Core,
  identity: SandboxIdentity,
  bucket: R2Bucket | undefined,
  id: string,
): Promise<void> {
  const manifest = core.snapshotManifest({ identity, now: Date.now(), id, env: {} });
  const object = (await bucket?.get(`backups/${id}/meta.json`)) ?? null;
  const metadata: unknown = object === null ? null : await object.json();
  core.checkSnapshotOwner({ manifest: { ...manifest, name: nameIn(metadata) }, identity });
}

function nameIn(metadata: unknown): string {
  if (typeof metadata !== "object" || metadata === null || !("name" in metadata)) return "";
  return typeof metadata.name === "string" ? metadata.name : "";
}
