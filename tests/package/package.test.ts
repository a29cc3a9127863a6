import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { build } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, describe, expect, it } from "vitest";
import { startDev } from "./dev.ts";
import { compile, emptyProject, install, node, packed, root } from "./projects.ts";

const folders: string[] = [];
const project = (name: string, example?: string) => {
  const folder = emptyProject(name, example);
  folders.push(folder);
  return folder;
};
afterAll(() => {
  folders.push(dirname(packed().main));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

const listed = (tarball: string) =>
  execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).trim().split("\n");

describe("the tarballs", () => {
  it("hold what is built and what builds sandboxd elsewhere, and no tests", () => {
    const files = listed(packed().main);
    for (const file of [
      "dist/wasm/core.wasm",
      "dist/worker/index.js",
      "dist/js/cli/main.js",
      "engine/CMakeLists.txt",
      "LICENSE",
    ])
      expect(files).toContain(`package/${file}`);
    expect(
      files.filter((file) => /^package\/(tests|node_modules|build|js|core|scripts)\//.test(file)),
    ).toEqual([]);
    expect(listed(packed().engine).sort()).toEqual([
      "package/LICENSE",
      "package/bin/sandboxd",
      "package/package.json",
    ]);
  });

  it("satisfy publint and arethetypeswrong", async () => {
    const { messages, pkg } = await publint({
      pack: { tarball: toArrayBuffer(readFileSync(packed().main)) },
      strict: true,
    });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);
    const attw = [
      `${root}node_modules/@arethetypeswrong/cli/dist/index.js`,
      packed().main,
      "--profile",
      "esm-only",
    ];
    const { code, stdout, stderr } = await node(root, ...attw);
    expect(code, stdout + stderr).toBe(0);
  });
});

describe("a project with nothing but the package", () => {
  const folder = project("bare");

  it("loads the core in Node, with no runtime installed", async () => {
    install(folder, false);
    for (const name of ["miniflare", "workerd", "wrangler"])
      expect(existsSync(`${folder}/node_modules/${name}`)).toBe(false);
    writeFileSync(
      `${folder}/core.mjs`,
      `import { loadCore } from "iterate-sandboxes/core";
       const core = await loadCore();
       console.log(core.durableObjectName({ projectId: "prj_1", path: "/sandboxes/main" }));`,
    );
    expect(await node(folder, "core.mjs")).toMatchObject({
      code: 0,
      stdout: "prj_1.iterate/sandboxes/main\n",
    });
  });

  it("bundles ./core and ./worker for workerd without the packages of Node's side", async () => {
    const bundle = await build({
      stdin: {
        contents: 'export * from "iterate-sandboxes/worker"; export * as core from "iterate-sandboxes/core";',
        resolveDir: folder,
      },
      bundle: true,
      write: false,
      metafile: true,
      format: "esm",
      conditions: ["workerd", "worker", "browser"],
      external: ["cloudflare:*", "node:*", "*.wasm"],
      logLevel: "silent",
    });
    const inputs = Object.keys(bundle.metafile.inputs);
    expect(inputs.some((input) => input.endsWith("iterate-sandboxes/dist/js/core/index.workerd.js"))).toBe(
      true,
    );
    expect(
      inputs.filter((input) =>
        /node_modules\/(miniflare|workerd|ws|commander)\/|dist\/js\/(node|cli)\//.test(input),
      ),
    ).toEqual([]);
  });

  it("says what is missing when the engine's runtime is not installed", async () => {
    const { code, stderr } = await node(
      folder,
      "--input-type=module",
      "-e",
      'const { open } = await import("iterate-sandboxes/node"); await open({ dir: ".itx", project: "prj_a" })',
    );
    expect(code).toBe(1);
    expect(stderr).toContain("npm install miniflare");
  });

  it("says what to install where sandboxd is neither packaged nor to be built", async () => {
    const script = `
      import { sandboxdPath } from "./node_modules/iterate-sandboxes/dist/js/engine/sandboxd-path.js";
      process.env.PATH = "";
      await sandboxdPath().catch(({ code, message }) => console.log(code, message));`;
    const { stdout, stderr } = await node(folder, "--input-type=module", "-e", script);
    expect(stderr).toMatch(/building sandboxd from its sources, once.*iterate-sandboxes-linux-x64/);
    expect(stdout).toMatch(/^sandboxd_missing .*iterate-sandboxes-linux-x64.*cmake/);
  });
});

it("a Node program opens a project in a folder, uses a sandbox and closes", async () => {
  const folder = project("node", "node");
  install(folder, true);
  const types = await compile(folder, "tsconfig.json");
  expect(types.code, types.stdout).toBe(0);
  const { code, stdout, stderr } = await node(folder, "main.ts");
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('{"stdout":"kept while asleep","exitCode":0}');
  expect(stdout).toMatch(/^\/sandboxes\/[0-9a-f-]{36} running$/m);
});

/** The example's Worker with one sandbox that stays. */
const petWorker = `
  import sandboxes from "iterate-sandboxes/worker";
  export * from "iterate-sandboxes/worker";
  export default {
    async fetch(request, env, ctx) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname !== "/run") return sandboxes.fetch(request, env, ctx);
      const itx = await env.ITX.itx();
      const pet = itx.sandboxes.get("/sandboxes/pet");
      if (searchParams.has("create")) await pet.create();
      return Response.json(await pet.exec(searchParams.get("command")));
    },
  };`;

describe("under wrangler dev, on the embedded engine", () => {
  const folder = project("worker", "worker");

  it("a Worker exports the classes and uses itx through a service binding", async () => {
    install(folder, true);
    const types = await compile(folder, "tsconfig.json");
    expect(types.code, types.stdout).toBe(0);
    await using dev = await startDev(folder, folder, "example-worker");
    expect(await dev.get("/run?command=echo%20hi")).toEqual({ stdout: "hi\n", stderr: "", exitCode: 0 });
  });

  it.each(["SIGINT", "SIGTERM"] as const)(
    "%s puts its sandboxes to sleep, and they wake the next time",
    async (signal) => {
      const pet = `${folder}/pet-${signal}`;
      mkdirSync(`${pet}/src`, { recursive: true });
      cpSync(`${folder}/wrangler.jsonc`, `${pet}/wrangler.jsonc`);
      writeFileSync(`${pet}/src/index.ts`, petWorker);
      const path = "/run?command=";
      {
        await using dev = await startDev(folder, pet, "example-worker");
        const write = encodeURIComponent("echo kept > /workspace/kept");
        expect(await dev.get(`${path}${write}&create`)).toMatchObject({ exitCode: 0 });
        await dev.end(signal);
        expect(dev.log.join("\n")).toContain("putting 1 sandbox to sleep");
        expect(dev.log.join("\n")).not.toContain("without a snapshot");
      }
      await using again = await startDev(folder, pet, "example-worker");
      const read = encodeURIComponent("cat /workspace/kept");
      expect(await again.get(`${path}${read}`)).toMatchObject({ stdout: "kept\n" });
    },
  );

  it("the SDK's quick start runs with one changed import", async () => {
    const quickStart = `${folder}/quick-start`;
    cpSync(`${root}examples/quick-start`, quickStart, { recursive: true });
    const types = await compile(folder, "quick-start/tsconfig.json");
    expect(types.code, types.stdout).toBe(0);
    await using dev = await startDev(folder, quickStart, "quick-start");
    expect(await dev.get("/run")).toEqual({ output: "4\n", success: true, exitCode: 0 });
    expect(await dev.get("/file")).toEqual({ content: "Hello, Sandbox!" });
    // The stock class takes no snapshot, and that is told.
    await dev.end("SIGTERM");
    expect(dev.log.join("\n")).toContain("ends without a snapshot");
  });
});

function toArrayBuffer(buffer: Buffer): ArrayBuffer {
  return new Uint8Array(buffer).buffer;
}
