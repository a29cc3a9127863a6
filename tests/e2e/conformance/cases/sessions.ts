/** Sessions: each is a shell of its own, and offers what the sandbox offers. */
import assert from "node:assert/strict";
import type { ExecEvent, ExecutionSession, FileWatchSSEEvent } from "@cloudflare/sandbox";
import {
  type Case,
  type Cases,
  client,
  events,
  eventWhere,
  object,
  refuses,
  terminalAnswers,
  upgradeRequest,
  type World,
} from "../case.ts";

let count = 0;

/** A case on a session of its own, in a folder of its own. */
function inSession(run: (session: ExecutionSession, world: World, folder: string) => Promise<void>): Case {
  return client(async (world) => {
    const id = `session-${++count}-${world.transport}`;
    const folder = `/workspace/${id}`;
    await world.sandbox.mkdir(folder);
    const session = await world.sandbox.createSession({ id, cwd: folder, env: { MINE: id } });
    await run(session, world, folder);
    await world.sandbox.deleteSession(id);
  });
}

export const sessions: Cases = {
  "Sandbox.createSession": {
    "a folder and variables of its own, apart from other sessions": client(async ({ sandbox }) => {
      const one = await sandbox.createSession({
        id: "one",
        cwd: "/tmp",
        env: { NAME: "one", NONE: undefined },
      });
      const two = await sandbox.createSession({ id: "two" });
      assert.equal(one.id, "one");
      await one.exec("export LATER=1; f() { echo function; }");
      assert.equal((await one.exec("pwd; echo $NAME $LATER; f")).stdout, "/tmp\none 1\nfunction\n");
      assert.equal(
        (await two.exec("pwd; echo [$NAME$LATER]; type f 2>&1 | head -1")).stdout.slice(0, 14),
        "/workspace\n[]\n",
      );
      assert.match((await sandbox.createSession()).id, /^session-/);
    }),
    "a time limit for each of its commands": client(async ({ sandbox }) => {
      const session = await sandbox.createSession({ id: "limited", commandTimeoutMs: 200 });
      assert.equal((await session.exec("sleep 4325")).exitCode, 124);
    }),
    "an id that is taken is refused": object(async (self) => {
      await self.createSession({ id: "taken" });
      await refuses(() => self.createSession({ id: "taken" }), {
        name: "SessionAlreadyExistsError",
        code: "SESSION_ALREADY_EXISTS",
      });
    }),
  },
  "Sandbox.getSession": {
    "finds the shell again by its id": client(async ({ sandbox }) => {
      await (await sandbox.createSession({ id: "again" })).exec("cd /usr; kept=1");
      assert.equal((await (await sandbox.getSession("again")).exec("pwd; echo $kept")).stdout, "/usr\n1\n");
    }),
  },
  "Sandbox.deleteSession": {
    "its shell is gone, and the id is free": client(async ({ sandbox }) => {
      const session = await sandbox.createSession({ id: "deleted" });
      await session.exec("kept=1");
      assert.equal((await sandbox.deleteSession("deleted")).sessionId, "deleted");
      const next = await sandbox.createSession({ id: "deleted" });
      assert.equal((await next.exec("echo [$kept]")).stdout, "[]\n");
    }),
    "the default session is refused, as in the SDK": object(async (self) => {
      await self.exec("true");
      await refuses(() => self.deleteSession("sandbox-shared"), {
        name: "Error",
        message: /default session/i,
      });
    }),
  },
  "ExecutionSession.exec": {
    "in its own shell, and exit ends that shell alone": inSession(async (session, { sandbox }, folder) => {
      assert.equal((await session.exec("pwd; echo $MINE; x=1")).stdout, `${folder}\n${session.id}\n`);
      assert.equal((await session.exec("echo $x")).stdout, "1\n");
      await refuses(() => session.exec("exit 42"), {
        name: "SessionTerminatedError",
        code: "SESSION_TERMINATED",
      });
      assert.equal((await session.exec("echo fresh [$x]")).stdout, "fresh []\n");
      assert.equal((await sandbox.exec("echo other")).stdout, "other\n");
    }),
  },
  "ExecutionSession.execStream": {
    "streams from its shell": inSession(async (session, world, folder) => {
      const got = await events<ExecEvent>(world, await session.execStream("pwd"));
      assert.equal(got.find(({ type }) => type === "stdout")?.data, `${folder}\n`);
      assert.equal(got.at(-1)?.exitCode, 0);
    }),
  },
  "ExecutionSession.startProcess": {
    "in its folder, and it outlives the session": inSession(async (session, { sandbox }, folder) => {
      const process = await session.startProcess("pwd; sleep 4326");
      assert.equal((await process.waitForLog("workspace")).line, folder);
      assert.equal(process.sessionId, session.id);
      await sandbox.deleteSession(session.id);
      assert.equal(await process.getStatus(), "running");
      await process.kill();
      await sandbox.createSession({ id: session.id });
    }),
  },
  "ExecutionSession.listProcesses": {
    "has what the session started": inSession(async (session) => {
      const { id, kill } = await session.startProcess("sleep 4326");
      assert((await session.listProcesses()).some((process) => process.id === id));
      await kill();
    }),
  },
  "ExecutionSession.getProcess": {
    "finds one by its id, and null for none": inSession(async (session) => {
      const { id, kill } = await session.startProcess("sleep 4326");
      assert.equal((await session.getProcess(id))?.sessionId, session.id);
      assert.equal(await session.getProcess("nobody"), null);
      await kill();
    }),
  },
  "ExecutionSession.killProcess": {
    "ends it": inSession(async (session) => {
      const { id } = await session.startProcess("sleep 4326");
      await session.killProcess(id);
      assert.equal((await session.getProcess(id))?.status, "killed");
    }),
  },
  "ExecutionSession.killAllProcesses": {
    "ends all and says how many": client(async ({ another }) => {
      const sandbox = another("session-kill-all");
      const session = await sandbox.createSession({ id: "killer" });
      await session.startProcess("sleep 4326");
      assert.equal(await session.killAllProcesses(), 1);
      await sandbox.destroy();
    }),
  },
  "ExecutionSession.cleanupCompletedProcesses": {
    "has nothing to clean: the SDK answers 0": inSession(async (session) => {
      assert.equal(await session.cleanupCompletedProcesses(), 0);
    }),
  },
  "ExecutionSession.getProcessLogs": {
    "what was printed": inSession(async (session) => {
      const process = await session.startProcess("echo $MINE");
      await process.waitForExit();
      assert.equal((await session.getProcessLogs(process.id)).stdout, `${session.id}\n`);
    }),
  },
  "ExecutionSession.streamProcessLogs": {
    "to the end": inSession(async (session, world) => {
      const process = await session.startProcess("echo out; sh -c 'exit 5'");
      const got = await events<ExecEvent>(world, await session.streamProcessLogs(process.id));
      assert.equal(got.find(({ type }) => type === "stdout")?.data, "out\n");
      assert.equal(got.at(-1)?.exitCode, 5);
    }),
  },
  "ExecutionSession.writeFile": {
    "a relative name is in its folder": inSession(async (session, { sandbox }, folder) => {
      await session.writeFile("written", "x");
      assert.equal((await sandbox.readFile(`${folder}/written`)).content, "x");
    }),
  },
  "ExecutionSession.readFile": {
    "a relative name is in its folder": inSession(async (session, { sandbox }, folder) => {
      await sandbox.writeFile(`${folder}/read`, "x");
      assert.equal((await session.readFile("read")).content, "x");
    }),
  },
  "ExecutionSession.readFileStream": {
    "a relative name is in its folder": inSession(async (session, { sandbox, sdk }, folder) => {
      await sandbox.writeFile(`${folder}/streamed`, "x");
      assert.equal((await sdk.collectFile(await session.readFileStream("streamed"))).content, "x");
    }),
  },
  "ExecutionSession.watch": {
    "tells of a change": inSession(async (session, world, folder) => {
      const stream = await session.watch(folder);
      await session.writeFile("changed", "x");
      const event = await eventWhere<FileWatchSSEEvent>(world, stream, ({ type }) => type === "event");
      assert(event.type === "event" && event.path.endsWith("changed"));
    }),
  },
  "ExecutionSession.checkChanges": {
    "unchanged, then changed": inSession(async (session, _world, folder) => {
      const { version } = await session.checkChanges(folder);
      await session.writeFile("changed", "x");
      assert.equal((await session.checkChanges(folder, { since: version })).status, "changed");
    }),
  },
  "ExecutionSession.mkdir": {
    "a relative name is in its folder": inSession(async (session, { sandbox }, folder) => {
      await session.mkdir("a/b", { recursive: true });
      assert.equal((await sandbox.exists(`${folder}/a/b`)).exists, true);
    }),
  },
  "ExecutionSession.deleteFile": {
    "a relative name is in its folder": inSession(async (session, { sandbox }, folder) => {
      await sandbox.writeFile(`${folder}/deleted`, "x");
      await session.deleteFile("deleted");
      assert.equal((await sandbox.exists(`${folder}/deleted`)).exists, false);
    }),
  },
  "ExecutionSession.renameFile": {
    "relative names are in its folder": inSession(async (session, { sandbox }, folder) => {
      await sandbox.writeFile(`${folder}/before`, "x");
      await session.renameFile("before", "after");
      assert.equal((await sandbox.readFile(`${folder}/after`)).content, "x");
    }),
  },
  "ExecutionSession.moveFile": {
    "relative names are in its folder": inSession(async (session, { sandbox }, folder) => {
      await sandbox.writeFile(`${folder}/here`, "x");
      await session.mkdir("sub");
      await session.moveFile("here", "sub/there");
      assert.equal((await sandbox.readFile(`${folder}/sub/there`)).content, "x");
    }),
  },
  "ExecutionSession.listFiles": {
    "its folder, with the SDK's options": inSession(async (session) => {
      await session.exec("mkdir sub; touch sub/deep .hidden");
      const names = (await session.listFiles(".", { recursive: true })).files.map(
        ({ relativePath }) => relativePath,
      );
      assert.deepEqual(names.toSorted(), ["sub", "sub/deep"]);
    }),
  },
  "ExecutionSession.exists": {
    "a relative name is in its folder": inSession(async (session) => {
      await session.exec("touch there");
      assert.equal((await session.exists("there")).exists, true);
      assert.equal((await session.exists("not")).exists, false);
    }),
  },
  "ExecutionSession.gitCheckout": {
    "into its folder, by the repository's name": inSession(async (session, { sandbox }, folder) => {
      await session.exec("git config --global http.sslVerify false");
      await session.gitCheckout("https://git.test/acme/repo", { targetDir: `${folder}/repo` });
      assert.equal((await sandbox.exists(`${folder}/repo/README.md`)).exists, true);
    }),
  },
  "ExecutionSession.setEnvVars": {
    "for one session alone": inSession(async (session, { sandbox }) => {
      await session.setEnvVars({ ONLY: "here", MINE: undefined });
      assert.equal((await session.exec("echo $ONLY [$MINE]")).stdout, "here []\n");
      assert.equal((await sandbox.exec("echo [$ONLY]")).stdout, "[]\n");
    }),
  },
  "ExecutionSession.createCodeContext": {
    "a context of the sandbox": inSession(async (session) => {
      const { id, language } = await session.createCodeContext({ language: "javascript" });
      assert.equal(language, "javascript");
      await session.deleteCodeContext(id);
    }),
  },
  "ExecutionSession.runCode": {
    runs: inSession(async (session) => {
      assert.equal((await session.runCode("6 * 7", { language: "python" })).results[0]?.text, "42");
    }),
  },
  "ExecutionSession.runCodeStream": {
    "the events of a run": inSession(async (session, world) => {
      const stream = await session.runCodeStream("6 * 7", { language: "python" });
      const got = await events<{ type: string; text?: string }>(world, stream);
      assert.equal(got.find(({ type }) => type === "result")?.text, "42");
    }),
  },
  "ExecutionSession.listCodeContexts": {
    "those of the sandbox": inSession(async (session) => {
      const { id } = await session.createCodeContext({ language: "javascript" });
      assert((await session.listCodeContexts()).some((context) => context.id === id));
      await session.deleteCodeContext(id);
    }),
  },
  "ExecutionSession.deleteCodeContext": {
    "it is gone": inSession(async (session) => {
      const { id } = await session.createCodeContext({ language: "javascript" });
      await session.deleteCodeContext(id);
      assert(!(await session.listCodeContexts()).some((context) => context.id === id));
    }),
  },
  "ExecutionSession.terminal": {
    "a terminal whose shell is the session's": inSession(async (session) => {
      const response = await session.terminal(upgradeRequest("http://sandbox/terminal"), {
        cols: 100,
        rows: 30,
      });
      await terminalAnswers(response, "stty size; echo $MINE", ["30 100", session.id]);
    }),
  },
};
