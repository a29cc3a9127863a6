/** The shell text of a command with a deadline, run by a real bash as a session runs it. */
import { execFile } from "node:child_process";
import { describe, expect, test } from "vitest";
import { withDeadline } from "../../js/src/worker/sandbox/deadline.ts";

interface Outcome {
  status: number;
  stdout: string;
  stderr: string;
  milliseconds: number;
}

function run(command: string, timeoutMs: number): Promise<Outcome> {
  const begun = Date.now();
  const text = withDeadline(command, timeoutMs, crypto.randomUUID());
  return new Promise((resolve) => {
    execFile("/bin/bash", ["-c", text], (error, stdout, stderr) => {
      const status = error === null ? 0 : Number(error.code);
      resolve({ status, stdout, stderr, milliseconds: Date.now() - begun });
    });
  });
}

/** How many processes have this text in their arguments; the search itself does not. */
function alive(mark: string): Promise<number> {
  return new Promise((resolve) => {
    execFile("ps", ["-e", "-o", "stat=,args="], (_error, stdout) => {
      const lines = stdout.split("\n").filter((line) => line.includes(mark) && !line.startsWith("Z"));
      resolve(lines.length);
    });
  });
}

describe("a command that ends in time", () => {
  test("keeps its status and what it wrote", async () => {
    const outcome = await run("echo out; echo err >&2; exit 7", 20_000);
    expect(outcome).toMatchObject({ status: 7, stdout: "out\n", stderr: "err\n" });
  });

  test("leaves no watcher behind", async () => {
    await run("true", 71_003);
    expect(await alive("71.003")).toBe(0);
  });

  test.each([
    ["quotes", `echo 'a b' "c'd" \\$x`, "a b c'd $x\n"],
    ["a heredoc", "cat <<'EOF'\nline $HOME\nEOF", "line $HOME\n"],
    ["empty standard input", "cat; read -r x; echo got:$x", "got:\n"],
    ["a comment at the end", "echo a # b", "a\n"],
  ])("runs %s as it is", async (_name, command, stdout) => {
    expect(await run(command, 20_000)).toMatchObject({ stdout });
  });

  test("reports broken syntax as the shell does", async () => {
    const outcome = await run("echo (", 20_000);
    expect(outcome.status).not.toBe(0);
    expect(outcome.stderr).toContain("syntax error");
  });
});

describe("a command that does not end in time", () => {
  test.each([
    ["one that sleeps", "echo begun; sleep 61.001", "61.001"],
    [
      "a group that ignores TERM",
      "echo begun; trap '' TERM; (trap '' TERM; sleep 61.002) & sleep 61.002",
      "61.002",
    ],
    ["children in the background", "echo begun; sleep 61.003 & sleep 61.003", "61.003"],
    ["a stopped one", "echo begun; kill -STOP $$; sleep 61.004", "61.004"],
    [
      "one that ends well at TERM",
      "echo begun; trap 'exit 0' TERM; while :; do sleep 0.05; done; : 61.005",
      "61.005",
    ],
  ])("%s is gone with its group when 124 is told", async (_name, command, mark) => {
    const outcome = await run(command, 400);
    expect(outcome.status).toBe(124);
    expect(outcome.stdout).toBe("begun\n");
    expect(outcome.stderr).toContain("did not end within 400 ms");
    expect(await alive(mark)).toBe(0);
    expect(outcome.milliseconds).toBeLessThan(8_000);
  });
});
