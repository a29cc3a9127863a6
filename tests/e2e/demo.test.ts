/** The README's first command, as a person runs it. */
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";

test("npm run demo prints every step and ends well", async () => {
  const child = spawn("npm", ["run", "demo"], { stdio: ["ignore", "pipe", "pipe"] });
  const status = new Promise((resolve) => child.once("exit", resolve));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(await status, stdout + stderr).toBe(0);
  expect(stdout).toContain("Everything held.");
  expect(stdout).toContain("the name is retired for ever");
});
