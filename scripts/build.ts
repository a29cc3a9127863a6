/** Builds what setup.sh stamps as "javascript": the Worker bundle with its wasm module beside it, and dist/js for the package. */
import { execFileSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { bundleWorker } from "./bundle-worker.ts";

const root = new URL("..", import.meta.url).pathname;

await bundleWorker("js/src/worker/index.ts", `${root}dist/worker`);

rmSync(`${root}dist/js`, { recursive: true, force: true });
execFileSync("tsc", ["-p", "tsconfig.json"], { cwd: root, stdio: "inherit" });
// npm makes a program executable where it installs the package; in the tree itself `npx itx` runs this file.
chmodSync(`${root}dist/js/cli/main.js`, 0o755);

// `#core` leads to the sources. What is published asks for the same module by the package's own name, whose exports choose the
// loader of Node or of workerd.
for (const entry of readdirSync(`${root}dist/js`, { recursive: true, encoding: "utf8" })) {
  if (!/\.(js|d\.ts)$/.test(entry)) continue;
  const text = readFileSync(`${root}dist/js/${entry}`, "utf8");
  if (text.includes('"#core"'))
    writeFileSync(`${root}dist/js/${entry}`, text.replaceAll('"#core"', '"iterate-sandboxes/core"'));
}
