/**
 * `npm run package`: what is published, as tarballs in build/package. The package itself comes from the tree as `npm pack` makes
 * it; the binary of this platform is a package of its own, so that others do not download it and no install script has to run.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";

const root = new URL("..", import.meta.url).pathname;
/** What has to be built before: see setup.sh. */
const parts = ["dist/js/index.js", "dist/wasm/core.wasm", "dist/worker/index.js", "dist/engine/sandboxd"];

export interface Tarballs {
  main: string;
  engine: string;
}

interface Manifest {
  version: string;
  optionalDependencies?: Record<string, string>;
  [key: string]: unknown;
}

const readManifest = (folder: string): Manifest => JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));

/** Packs both into a folder, which is emptied first, and gives their paths. */
export function buildPackage(target: string): Tarballs {
  const missing = parts.filter((part) => !existsSync(`${root}${part}`));
  if (missing.length > 0) throw new Error(`not built: ${missing.join(", ")}; run bash scripts/setup.sh`);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });

  const engine = `${target}/linux-x64`;
  stageEngine(engine);
  return { main: pack(root, target), engine: pack(engine, target) };
}

function stageEngine(folder: string): void {
  const manifest = readManifest(`${root}packages/linux-x64`);
  const main = readManifest(root);
  const pinned = main.optionalDependencies?.["iterate-sandboxes-linux-x64"];
  if (manifest.version !== main.version || pinned !== main.version) {
    throw new Error(
      `versions differ: ${main.version}, its optional dependency ${pinned}, linux-x64 ${manifest.version}`,
    );
  }
  mkdirSync(`${folder}/bin`, { recursive: true });
  cpSync(`${root}dist/engine/sandboxd`, `${folder}/bin/sandboxd`);
  chmodSync(`${folder}/bin/sandboxd`, 0o755);
  cpSync(`${root}LICENSE`, `${folder}/LICENSE`);
  // Not in the tree's own manifest: there the folder is a workspace, which npm would refuse on other platforms.
  const published = { ...manifest, os: ["linux"], cpu: ["x64"] };
  writeFileSync(`${folder}/package.json`, `${JSON.stringify(published, null, 2)}\n`);
}

function pack(folder: string, target: string): string {
  const args = ["pack", "--json", "--ignore-scripts", "--pack-destination", target];
  const answer = execFileSync("npm", args, {
    cwd: folder,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [packed] = JSON.parse(answer) as { filename: string }[];
  if (packed === undefined) throw new Error(`npm pack made nothing of ${folder}`);
  return `${target}/${packed.filename}`;
}

if (import.meta.main) console.log(Object.values(buildPackage(`${root}build/package`)).join("\n"));
