/** Code contexts: Python, JavaScript and TypeScript. */
import assert from "node:assert/strict";
import type { ExecutionResult } from "@cloudflare/sandbox";
import { type Cases, client, events, object, refuses, streamRefuses } from "../case.ts";

interface CodeEvent {
  type: string;
  text?: string;
}

const printed = ({ logs }: ExecutionResult) => logs.stdout.join("");

export const code: Cases = {
  "Sandbox.createCodeContext": {
    "a context of a language, in a folder, with variables": client(async ({ sandbox }) => {
      const context = await sandbox.createCodeContext({
        language: "python",
        cwd: "/tmp",
        envVars: { CONTEXT: "mine" },
      });
      assert.equal(context.language, "python");
      assert.equal(context.cwd, "/tmp");
      assert(context.createdAt instanceof Date);
      const run = await sandbox.runCode("import os; print(os.getcwd(), os.environ['CONTEXT'])", { context });
      assert.equal(printed(run), "/tmp mine\n");
      await sandbox.deleteCodeContext(context.id);
    }),
    "a language that is none": object(async (self) => {
      await refuses(() => self.createCodeContext({ language: "cobol" as "python" }), {
        name: "SandboxSecurityError",
        code: "INVALID_LANGUAGE",
      });
    }),
  },
  "Sandbox.runCode": {
    "python: state, output, the last value, and rich values": client(async ({ sandbox }) => {
      const context = await sandbox.createCodeContext({ language: "python" });
      await sandbox.runCode("x = 41", { context });
      const run = await sandbox.runCode("import sys\nprint('out')\nprint('err', file=sys.stderr)\nx + 1", {
        context,
      });
      assert.equal(printed(run), "out\n");
      assert.equal(run.logs.stderr.join(""), "err\n");
      assert.equal(run.results[0]?.text, "42");
      const rich = "class R:\n  def _repr_html_(self): return '<b>rich</b>'\nR()";
      assert.equal((await sandbox.runCode(rich, { context })).results[0]?.html, "<b>rich</b>");
      await sandbox.deleteCodeContext(context.id);
    }),
    "javascript: state, await and the last value": client(async ({ sandbox }) => {
      const javascript = await sandbox.createCodeContext({ language: "javascript" });
      await sandbox.runCode("const kept = await Promise.resolve(20)", { context: javascript });
      const run = await sandbox.runCode("console.log('out'); kept * 2 + 2", { context: javascript });
      assert.equal(printed(run), "out\n");
      assert.equal(run.results[0]?.text, "42");
      await sandbox.deleteCodeContext(javascript.id);
    }),
    "typescript where the sandbox's Node can strip types, else an error that says what it needs": client(
      async ({ sandbox }) => {
        const strips =
          "process.exit(typeof require('node:module').stripTypeScriptTypes === 'function' ? 0 : 1)";
        const { success } = await sandbox.exec(`node -e "${strips}"`);
        const { results, error } = await sandbox.runCode("const n: number = 6; n * 7", {
          language: "typescript",
        });
        if (success) assert.equal(results[0]?.text, "42");
        else assert.match(error?.message ?? "", /TypeScript needs Node 22\.13 or newer/);
      },
    ),
    "an error that the code throws is part of the answer": client(async ({ sandbox }) => {
      const { error } = await sandbox.runCode("1 / 0", { language: "python" });
      assert.equal(error?.name, "ZeroDivisionError");
      assert.match(error?.message ?? "", /division by zero/);
      assert((error?.traceback.length ?? 0) > 0);
    }),
    "calls back with the output as it comes": object(async (self) => {
      const seen: string[] = [];
      await self.runCode("print('called'); 5", {
        language: "python",
        onStdout: ({ text }) => void seen.push(`out ${text.trim()}`),
        onResult: (result) => void seen.push(`result ${result.text}`),
      });
      assert.deepEqual(seen, ["out called", "result 5"]);
    }),
  },
  "Sandbox.runCodeStream": {
    "the events of a run": client(async (world) => {
      const stream = await world.sandbox.runCodeStream("print('streamed')\n7", { language: "python" });
      const got = await events<CodeEvent>(world, stream);
      assert.deepEqual(
        got.filter(({ type }) => type === "stdout").map(({ text }) => text),
        ["streamed\n"],
      );
      assert.equal(got.find(({ type }) => type === "result")?.text, "7");
      assert.equal(got.at(-1)?.type, "execution_complete");
    }),
  },
  "Sandbox.listCodeContexts": {
    "has those that were made": client(async ({ sandbox }) => {
      const { id } = await sandbox.createCodeContext({ language: "javascript" });
      const found = (await sandbox.listCodeContexts()).find((context) => context.id === id);
      assert.equal(found?.language, "javascript");
      await sandbox.deleteCodeContext(id);
    }),
  },
  "Sandbox.deleteCodeContext": {
    "it is gone, and a second time is refused": object(async (self, world) => {
      const context = await self.createCodeContext({ language: "python" });
      await self.deleteCodeContext(context.id);
      assert(!(await self.listCodeContexts()).some(({ id }) => id === context.id));
      const gone = { name: "ContextNotFoundError", code: "CONTEXT_NOT_FOUND" };
      await refuses(() => self.deleteCodeContext(context.id), gone);
      await streamRefuses(world, () => self.runCode("1", { context }), gone);
    }),
  },
};
