/** Commands: in the default session, in another, and without one. */
import assert from "node:assert/strict";
import type { ExecEvent } from "@cloudflare/sandbox";
import { type Cases, client, events, eventWhere, object, refuses } from "../case.ts";

export const commands: Cases = {
  "Sandbox.exec": {
    "gives the output, the status and what was run": client(async ({ sandbox }) => {
      const result = await sandbox.exec("echo out; echo err >&2; sh -c 'exit 7'");
      assert.equal(result.stdout, "out\n");
      assert.equal(result.stderr, "err\n");
      assert.equal(result.exitCode, 7);
      assert.equal(result.success, false);
      assert.equal(result.command, "echo out; echo err >&2; sh -c 'exit 7'");
      assert(Date.parse(result.timestamp) > 0);
      assert(result.duration >= 0);
    }),
    "keeps the shell's state from one call to the next": client(async ({ sandbox }) => {
      await sandbox.exec("cd /usr; kept=state");
      assert.equal((await sandbox.exec("pwd; echo $kept")).stdout, "/usr\nstate\n");
      await sandbox.exec("cd /workspace; unset kept");
    }),
    "takes a folder and variables for one command alone": client(async ({ sandbox }) => {
      const { stdout } = await sandbox.exec("pwd; echo $ONCE $GONE", {
        cwd: "/tmp",
        env: { ONCE: "now", GONE: undefined },
      });
      assert.equal(stdout, "/tmp\nnow\n");
      assert.equal((await sandbox.exec("pwd; echo [$ONCE]")).stdout, "/workspace\n[]\n");
    }),
    "a timeout ends the whole tree with status 124 and keeps the output": client(async ({ sandbox }) => {
      const result = await sandbox.exec("echo before; sleep 4321 & sleep 4321", { timeout: 300 });
      assert.equal(result.exitCode, 124);
      assert.equal(result.stdout, "before\n");
      assert.equal((await sandbox.exec("pgrep -f 'sleep 432[1]'")).stdout, "");
    }),
    "an empty standard input, and output that is not ASCII": client(async ({ sandbox }) => {
      assert.equal((await sandbox.exec("cat; printf 'h\\u00e9llo \\u4e16\\u754c'")).stdout, "héllo 世界");
    }),
    "calls back with the output as it comes, and with the result": client(async ({ sandbox }) => {
      const outputs: string[] = [];
      const both = Promise.withResolvers<void>();
      const completed = Promise.withResolvers<number>();
      const { exitCode } = await sandbox.exec("echo one; echo two >&2", {
        stream: true,
        onOutput: (stream, data) => {
          if (outputs.push(`${stream} ${data.trim()}`) === 2) both.resolve();
        },
        onComplete: (result) => completed.resolve(result.exitCode),
      });
      assert.equal(exitCode, 0);
      // The SDK does not wait for its callbacks, which cross the stub by themselves.
      await both.promise;
      assert.deepEqual(outputs.toSorted(), ["stderr two", "stdout one"]);
      assert.equal(await completed.promise, 0);
    }),
    "an aborted signal is refused before anything runs": object(async (self) => {
      const signal = AbortSignal.abort();
      await refuses(() => self.exec("touch /tmp/aborted", { signal }), {
        name: "Error",
        message: /aborted/,
      });
      assert.equal((await self.exists("/tmp/aborted")).exists, false);
    }),
    "exit in the default session ends that session with the SDK's error": object(async (self) => {
      await refuses(() => self.exec("exit 3"), {
        name: "SessionTerminatedError",
        code: "SESSION_TERMINATED",
      });
      assert.equal((await self.exec("echo back")).stdout, "back\n");
    }),
    "an empty command is refused by the SDK's code": object(async (self) => {
      await refuses(() => self.exec(""), { name: "CommandError", code: "INVALID_COMMAND" });
    }),
  },
  "Sandbox.execWithSessionToken": {
    "runs in the session that is named": client(async ({ sandbox }) => {
      await sandbox.createSession({ id: "token", cwd: "/tmp", env: { WHERE: "token" } });
      const result = await sandbox.execWithSessionToken("pwd; echo $WHERE", "token");
      assert.equal(result.stdout, "/tmp\ntoken\n");
      assert.equal(result.sessionId, "token");
    }),
    "without a session, nothing is kept between calls": client(async ({ another }) => {
      const sandbox = another("sessionless", { enableDefaultSession: false });
      await sandbox.exec("cd /tmp; KEPT=1");
      const result = await sandbox.exec("pwd; echo [$KEPT]");
      assert.equal(result.stdout, "/workspace\n[]\n");
      assert.equal(result.sessionId, undefined);
    }),
    "an empty id is refused": object(async (self) => {
      await refuses(() => self.execWithSessionToken("true", " "), {
        name: "Error",
        message: /must not be empty/,
      });
    }),
  },
  "Sandbox.execStream": {
    "the events of a command, from start to its status": client(async (world) => {
      const stream = await world.sandbox.execStream("echo one; echo two >&2; sh -c 'exit 5'");
      const got = await events<ExecEvent>(world, stream);
      assert.equal(got[0]?.type, "start");
      const data = (type: string) =>
        got
          .filter((event) => event.type === type)
          .map((event) => event.data)
          .join("");
      assert.equal(data("stdout"), "one\n");
      assert.equal(data("stderr"), "two\n");
      assert.equal(got.at(-1)?.type, "complete");
      assert.equal(got.at(-1)?.exitCode, 5);
    }),
    "output arrives before the command ends, and its next output after a cancel ends it": object(
      async (self, world) => {
        const stream = await self.execStream("sh -c 'while echo $A; do sleep 0.05; done' ticker-4322", {
          env: { A: "tick" },
        });
        const event = await eventWhere<ExecEvent>(world, stream, ({ type }) => type === "stdout");
        assert.equal(event.data, "tick\n");
        const gone =
          "for i in $(seq 200); do pgrep -f ticker-432[2] >/dev/null || { echo gone; break; }; sleep 0.05; done";
        assert.equal((await self.execWithSessionToken(gone, "watching")).stdout, "gone\n");
      },
    ),
  },
  "Sandbox.execStreamWithSessionToken": {
    "streams from the session that is named": client(async (world) => {
      await world.sandbox.createSession({ id: "stream-token", cwd: "/usr" });
      const stream = await world.sandbox.execStreamWithSessionToken("pwd", "stream-token");
      const got = await events<ExecEvent>(world, stream);
      assert.deepEqual(
        got.filter(({ type }) => type === "stdout").map(({ data }) => data),
        ["/usr\n"],
      );
    }),
    "an empty id is refused": object(async (self) => {
      await refuses(() => self.execStreamWithSessionToken("true", ""), {
        name: "Error",
        message: /must not be empty/,
      });
    }),
  },
  "Sandbox.setEnvVars": {
    "sets and takes away variables of the session that runs": client(async ({ another }) => {
      const sandbox = another("variables");
      await sandbox.setEnvVars({ FIRST: "1", QUOTED: `it's "quoted" $HOME` });
      assert.equal((await sandbox.exec('echo $FIRST; echo "$QUOTED"')).stdout, `1\nit's "quoted" $HOME\n`);
      await sandbox.setEnvVars({ FIRST: undefined, SECOND: "2" });
      assert.equal((await sandbox.exec("echo [$FIRST] $SECOND")).stdout, "[] 2\n");
      const session = await sandbox.createSession({ id: "later" });
      assert.equal((await session.exec("echo $SECOND")).stdout, "2\n");
      await sandbox.destroy();
    }),
  },
};
