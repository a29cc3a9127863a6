/** Spawns `sh -c true` each time it is asked, in a process of its own, and answers with the milliseconds. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { time } from "./measure.ts";

process.on("message", async () => {
  process.send?.(await time(() => promisify(execFile)("sh", ["-c", "true"])));
});
