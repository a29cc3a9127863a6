import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openStateDir } from "../../js/src/node/state-dir.ts";
import { refusal } from "../support/server.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "itx-state-"));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

test("keys are made once, for this user alone", async () => {
  const first = await openStateDir(dir);
  await first.release();
  expect((await stat(join(dir, "keys.json"))).mode & 0o777).toBe(0o600);
  const again = await openStateDir(dir);
  expect(again.keys).toEqual(first.keys);
  expect(JSON.parse(await readFile(join(dir, "keys.json"), "utf8"))).toEqual(first.keys);
  await again.release();
});

test("a folder has one server at a time, by whatever path it is named", async () => {
  const first = await openStateDir(dir);
  expect(await refusal(() => openStateDir(join(dir, "..", dir.split("/").at(-1) ?? "")))).toBe(
    "state_dir_in_use",
  );
  await first.release();
  await (await openStateDir(dir)).release();
});
