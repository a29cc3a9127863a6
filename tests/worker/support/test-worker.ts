/** Builds the Worker with a test's own entry around it into a folder, which a server takes as its `workerDir`. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleWorker } from "../../../scripts/bundle-worker.ts";

export async function buildTestWorker(entry: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "test-worker-"));
  await bundleWorker(entry, folder);
  return folder;
}
