/** Commands of the SDK's sessions for backups, which the agent runs without their shell where that makes no difference. */
import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Agent } from "./agent_client.ts";

let agent: Agent;
beforeAll(async () => {
  agent = await Agent.start();
}, 900_000);
afterAll(async () => {
  await agent.stop();
});

describe("a session of the SDK's for backups", () => {
  const commands: Record<string, string> = {
    "a program by its path": "/usr/bin/printf '%s|' plain 'two words' '' a'b'c '$HOME' '\\'",
    "a program's status and output": "/bin/ls /none",
    "no such program": "/no/such program",
    "what needs a shell": "/bin/echo $((1 + 2)); /bin/echo ~ {a,b} \"$PWD\" 'it'\\''s' | /bin/cat",
    "an end by a signal": "/bin/sh -c 'kill -9 $$'",
    "a folder, twice":
      "mkdir -p 'FOLDER/direct/two words/x' && ls FOLDER/direct; mkdir -p 'FOLDER/direct/two words/x'",
    "a folder": "mkdir -p 'FOLDER/direct/plain'",
    "a folder where a file is": "mkdir -p /etc/passwd",
    "files that are to go": "rm -f FOLDER/direct/none",
    "a folder that is to go": "rm -f 'FOLDER/direct/plain'",
    "an option": "rm -f -Q",
    nothing: "",
  };
  for (const [name, command] of Object.entries(commands)) {
    test(`answers as any other does: ${name}`, async () => {
      const run = async (sessionId: string) => {
        const text = command.replaceAll("FOLDER", agent.folder);
        const { exitCode, stdout, stderr, code } = await agent.post("/api/execute", {
          command: text,
          sessionId,
        });
        return { exitCode, stdout, stderr: String(stderr).replace(/.*Killed.*\n/, ""), code };
      };
      const direct = await run("__sandbox_backup_direct");
      const ordinary = await run("ordinary");
      expect(direct.exitCode ?? direct.code).toBeDefined();
      expect(direct).toEqual(ordinary);
    });
  }

  test("ends what it runs when it is deleted", async () => {
    const sessionId = "__sandbox_backup_deleted";
    const running = agent.post("/api/execute", { command: "/bin/sleep 1000", sessionId });
    const sleeping = () =>
      execFileSync("bash", ["-c", "pgrep -fx '/bin/sleep 1000' || true"]).toString().trim();
    await expect.poll(sleeping).not.toBe("");
    await agent.post("/api/session/delete", { sessionId });
    expect(await running).toMatchObject({ code: "SESSION_DESTROYED" });
    expect(sleeping()).toBe("");
  });
});
