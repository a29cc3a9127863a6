import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { Miniflare } from "miniflare";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readVectors, vectorFiles } from "./files.ts";

const root = new URL("../../", import.meta.url).pathname;
let miniflare: Miniflare;

beforeAll(async () => {
  const bundle = await build({
    absWorkingDir: root,
    entryPoints: ["tests/wasm/workerd-entry.ts"],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2023",
    conditions: ["workerd"],
    external: ["node:*"],
    plugins: [
      {
        name: "wasm-module",
        setup: (plugin) =>
          plugin.onResolve({ filter: /\.wasm$/ }, () => ({ path: "./core.wasm", external: true })),
      },
    ],
  });
  miniflare = new Miniflare({
    compatibilityDate: "2026-06-01",
    compatibilityFlags: ["nodejs_compat"],
    modules: [
      { type: "ESModule", path: "worker.js", contents: bundle.outputFiles[0]?.text ?? "" },
      { type: "CompiledWasm", path: "core.wasm", contents: await readFile(`${root}dist/wasm/core.wasm`) },
    ],
  });
  await miniflare.ready;
});
afterAll(() => miniflare.dispose());

it.each(vectorFiles)("workerd answers every vector of %s", async (name) => {
  const vectors = readVectors(name);
  const response = await miniflare.dispatchFetch("http://core/", {
    method: "POST",
    body: JSON.stringify(vectors),
  });
  expect(await response.json()).toEqual({ answered: vectors.length, failures: [] });
});
