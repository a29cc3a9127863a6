import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** An empty folder. What stood there goes in the background: containers of a killed engine may still be dying in it. */
export async function freshDir(dir: string, log: (line: string) => void): Promise<void> {
  await mkdir(dirname(dir), { recursive: true, mode: 0o700 });
  const stale = `${dir}.stale-${randomUUID()}`;
  const found = await rename(dir, stale).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
  await mkdir(dir, { mode: 0o700 });
  const leftovers = found ? [stale] : [];
  for (const name of await readdir(dirname(dir))) {
    if (name.startsWith(`${basename(dir)}.stale-`) && join(dirname(dir), name) !== stale) {
      leftovers.push(join(dirname(dir), name));
    }
  }
  for (const path of leftovers) {
    rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }).catch((error: Error) =>
      log(`${path} remains: ${error.message}`),
    );
  }
}
