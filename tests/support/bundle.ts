/** One file that runs with node alone, so that real npm packages run inside a sandbox without an installation. */
import { build } from "esbuild";

const root = new URL("../../", import.meta.url).pathname;

export async function bundleForNode(source: string): Promise<string> {
  const result = await build({
    stdin: { contents: source, resolveDir: root, loader: "ts" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    write: false,
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    logLevel: "error",
  });
  const [file] = result.outputFiles;
  if (file === undefined) throw new Error("esbuild gave no file");
  return file.text;
}
