/** Builds the Worker of `fault-entry.ts` into a folder, as `scripts/build.ts` builds the real one. */
import { cpSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

const root = new URL("../../../", import.meta.url).pathname;

export async function buildFaultWorker(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "fault-worker-"));
  await build({
    absWorkingDir: root,
    entryPoints: ["tests/worker/fault-entry.ts"],
    outfile: join(folder, "index.js"),
    bundle: true,
    format: "esm",
    platform: "neutral",
    target: "es2023",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser", "import"],
    external: ["cloudflare:*", "node:*"],
    plugins: [
      {
        name: "wasm-module",
        setup(pluginBuild) {
          pluginBuild.onResolve({ filter: /\.wasm$/ }, () => ({ path: "./core.wasm", external: true }));
        },
      },
    ],
    logLevel: "error",
  });
  cpSync(join(root, "dist/wasm/core.wasm"), join(folder, "core.wasm"));
  return folder;
}
