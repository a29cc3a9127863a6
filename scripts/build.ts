/** Builds what setup.sh stamps as "javascript": the Worker bundle with its wasm module beside it, and dist/js for the package. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const root = new URL("..", import.meta.url).pathname;

mkdirSync(`${root}dist/worker`, { recursive: true });
await build({
  absWorkingDir: root,
  entryPoints: ["js/src/worker/index.ts"],
  outfile: "dist/worker/index.js",
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
      // Workers may not compile wasm from bytes: the module stays an import, resolved beside the bundle.
      setup(pluginBuild) {
        pluginBuild.onResolve({ filter: /\.wasm$/ }, () => ({ path: "./core.wasm", external: true }));
      },
    },
  ],
  // The libraries key their handlers by class name.
  keepNames: true,
  sourcemap: "linked",
  logLevel: "warning",
});
cpSync(`${root}dist/wasm/core.wasm`, `${root}dist/worker/core.wasm`);

rmSync(`${root}dist/js`, { recursive: true, force: true });
execFileSync("tsc", ["-p", "tsconfig.json"], { cwd: root, stdio: "inherit" });

// `#core` leads to the sources. What is published asks for the same module by the package's own name, whose exports choose the
// loader of Node or of workerd.
for (const entry of readdirSync(`${root}dist/js`, { recursive: true, encoding: "utf8" })) {
  if (!/\.(js|d\.ts)$/.test(entry)) continue;
  const text = readFileSync(`${root}dist/js/${entry}`, "utf8");
  if (text.includes('"#core"'))
    writeFileSync(`${root}dist/js/${entry}`, text.replaceAll('"#core"', '"iterate-sandboxes/core"'));
}
