/** Projects outside this tree that have the package from its tarballs, as a user's would. */
import { execFile, execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackage, type Tarballs } from "../../scripts/build-package.ts";

export const root = new URL("../../", import.meta.url).pathname;

interface Manifest {
  dependencies?: Record<string, string>;
  overrides?: Record<string, string>;
  [key: string]: unknown;
}

export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

let tarballs: Tarballs | undefined;

/** Packs once a run, apart from other runs on this tree. */
export function packed(): Tarballs {
  tarballs ??= buildPackage(mkdtempSync(join(tmpdir(), "package-tarballs-")));
  return tarballs;
}

/** An empty folder with a copy of an example, or with nothing but a manifest. */
export function emptyProject(name: string, example?: string): string {
  const folder = mkdtempSync(join(tmpdir(), `package-${name}-`));
  if (example === undefined)
    writeFileSync(`${folder}/package.json`, JSON.stringify({ private: true, type: "module" }));
  else cpSync(`${root}examples/${example}`, folder, { recursive: true });
  return folder;
}

/** Installs what the manifest names, with the package from its tarball and without running any install script. */
export function install(folder: string, platform: boolean): void {
  const { main, engine } = packed();
  const file = `${folder}/package.json`;
  const manifest: Manifest = JSON.parse(readFileSync(file, "utf8"));
  const binary: Record<string, string> = platform ? { "iterate-sandboxes-linux-x64": `file:${engine}` } : {};
  manifest.dependencies = { ...manifest.dependencies, "iterate-sandboxes": `file:${main}`, ...binary };
  // The published name stands for the tarball wherever it is depended on.
  if (platform) manifest.overrides = { "iterate-sandboxes-linux-x64": "$iterate-sandboxes-linux-x64" };
  writeFileSync(file, JSON.stringify(manifest, null, 2));
  const omit = platform ? [] : ["--omit=optional"];
  const args = [
    "install",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "--no-package-lock",
    ...omit,
  ];
  execFileSync("npm", args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
}

export function home(folder: string): Record<string, string | undefined> {
  mkdirSync(`${folder}/home`, { recursive: true });
  return {
    PATH: `${folder}/node_modules/.bin:${process.env.PATH}`,
    HOME: `${folder}/home`,
    CI: "1",
    NO_COLOR: "1",
    WRANGLER_REGISTRY_PATH: `${folder}/home/registry`,
    WRANGLER_SEND_METRICS: "false",
  };
}

/** Runs Node on the arguments in the project. */
export function node(folder: string, ...args: string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const options = { cwd: folder, env: home(folder), maxBuffer: 16 << 20 };
    execFile(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", ...args],
      options,
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr }),
    );
  });
}

/** The compiler of this tree on the project's own configuration: what it says about the package's types. */
export const compile = (folder: string, config: string) =>
  node(folder, `${root}node_modules/typescript/bin/tsc`, "-p", config);
