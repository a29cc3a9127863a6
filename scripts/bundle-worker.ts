/** Bundles a Worker for workerd, with the core's wasm module beside it. */
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";

const root = new URL("..", import.meta.url).pathname;

/** Workers may not compile wasm from bytes: the module stays an import, resolved beside the bundle. */
const wasmModule: Plugin = {
  name: "wasm-module",
  setup(pluginBuild) {
    pluginBuild.onResolve({ filter: /\.wasm$/ }, () => ({ path: "./core.wasm", external: true }));
  },
};

/** What makes a Worker's module of its sources; tests bundle theirs by the same. */
export const workerBundle = {
  absWorkingDir: root,
  bundle: true,
  format: "esm",
  platform: "neutral",
  target: "es2023",
  mainFields: ["module", "main"],
  conditions: ["workerd", "worker", "browser", "import"],
  external: ["cloudflare:*", "node:*"],
  plugins: [wasmModule],
  // The libraries key their handlers by class name.
  keepNames: true,
} as const satisfies BuildOptions;

/** Writes `index.js` and `core.wasm` into the folder. The entry is a path inside the repository. */
export async function bundleWorker(entry: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await build({
    ...workerBundle,
    entryPoints: [entry],
    outfile: join(folder, "index.js"),
    sourcemap: "linked",
    logLevel: "warning",
  });
  cpSync(join(root, "dist/wasm/core.wasm"), join(folder, "core.wasm"));
}
