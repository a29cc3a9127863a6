/** Every code block of the README and the guide runs. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Itx } from "../../js/src/node/itx.ts";
import { Terminal } from "../support/itx-command.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { type Block, blocksOf } from "./blocks.ts";
import { RUN_ELSEWHERE } from "./documented.ts";

const root = new URL("../../", import.meta.url).pathname;
const pages = ["README.md", ...readdirSync(`${root}docs/guide`).map((name) => `docs/guide/${name}`)].sort();

/** Pictures and settings: nothing to run. Configuration has its own tests in tests/wrangler. */
const NOT_RUN = new Set(["", "text", "jsonc", "json"]);

let server: TestServer;
const terminal = new Terminal();
const scratch = `${root}build/docs-blocks`;

beforeAll(async () => {
  server = await startTestServer();
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  // A project of one's own has a manifest; without one npm would look for it in the folders above.
  writeFileSync(`${terminal.folder}/package.json`, '{ "private": true }');
});
afterAll(async () => {
  await server?.close();
  await terminal.close();
});

async function runScript(block: Block, itx: Itx): Promise<void> {
  const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor as new (
    ...parts: string[]
  ) => (itx: Itx, console: { log(...values: unknown[]): void }) => Promise<void>;
  await new AsyncFunction("itx", "console", block.code)(itx, { log: () => {} });
}

async function runProgram(block: Block): Promise<void> {
  // A page whose program is JavaScript installs the package before; for others, inside this package its own name resolves by its
  // exports map, as it does for those who install it.
  const name = block.at.replaceAll(/\W/g, "-");
  const file = block.language === "js" ? `${terminal.folder}/main.mjs` : `${scratch}/${name}.ts`;
  writeFileSync(file, block.code);
  const { status, stderr } = await terminal.sh(`node --disable-warning=ExperimentalWarning ${file}`);
  expect(status, stderr).toBe(0);
}

/** The module as it stands, with the project's API as its binding; examples/worker runs one in workerd. */
async function runWorkerBlock(block: Block, itx: Itx): Promise<void> {
  const file = `${scratch}/${block.at.replaceAll(/\W/g, "-")}.ts`;
  writeFileSync(file, block.code);
  interface Env {
    ITX: { itx(): Promise<Itx> };
  }
  const module: { default: { fetch(request: Request, env: Env): Promise<Response> } } = await import(file);
  const response = await module.default.fetch(new Request("https://example.test/"), {
    ITX: { itx: () => Promise.resolve(itx) },
  });
  expect(response.status).toBe(200);
}

async function runShell(block: Block): Promise<void> {
  const lines = block.code.split("\n").filter((line) => !RUN_ELSEWHERE.test(line));
  const { status, stdout, stderr } = await terminal.sh(lines.join("\n"));
  expect(status, stdout + stderr).toBe(0);
}

describe.each(pages)("%s", (page) => {
  const blocks = blocksOf(page).filter(({ language }) => !NOT_RUN.has(language));
  // A page's shell blocks need a server, which the page itself may start.
  const startsServer = blocks.some(({ code }) => /itx dev/.test(code));
  const needsServer = !startsServer && blocks.some(({ language }) => language === "sh");

  // The README's install packages, which may take its time.
  test("its blocks run in order", { timeout: 300_000 }, async () => {
    const itx = await server.itx(`prj_${page.replaceAll(/\W/g, "_").toLowerCase()}`);
    if (needsServer) expect((await terminal.itx(["dev", "--detach", "--port", "0"])).status).toBe(0);
    for (const block of blocks) {
      try {
        if (block.language === "sh") await runShell(block);
        else if (block.language === "js") await runProgram(block);
        else if (block.language !== "ts") throw new Error(`no way to run ${block.language}`);
        else if (/^export default/m.test(block.code)) await runWorkerBlock(block, itx);
        else if (/^import /m.test(block.code)) await runProgram(block);
        else await runScript(block, itx);
      } catch (error) {
        await terminal.itx(["dev", "--stop"]);
        throw new Error(`${block.at}: ${error instanceof Error ? error.message : String(error)}`, {
          cause: error,
        });
      }
    }
    expect((await terminal.itx(["dev", "--stop"])).status).toBe(0);
  });
});
