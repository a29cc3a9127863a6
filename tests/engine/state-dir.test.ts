import { chmod, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeStateDir, openStateDir, readKeys } from "../../js/src/node/state-dir.ts";
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

test.each(["openStateDir", "readKeys"])("%s makes the folder for this user alone", async (way) => {
  const made = join(dir, "made");
  if (way === "openStateDir") await (await openStateDir(made)).release();
  else await readKeys(made);
  expect((await stat(made)).mode & 0o777).toBe(0o700);
});

test("a folder with keys that others may enter is closed to them; one without keys is not ours to change", async () => {
  await chmod(dir, 0o755);
  await makeStateDir(dir);
  expect((await stat(dir)).mode & 0o777).toBe(0o755);
  await readKeys(dir);
  await (await openStateDir(dir)).release();
  expect((await stat(dir)).mode & 0o777).toBe(0o700);
});

test.each(["secret-in-no-json", '{"tokenKeys":"secret"}'])(
  "keys that are damaged are told without a word of them: %s",
  async (text) => {
    await writeFile(join(dir, "keys.json"), text);
    expect(await refusal(() => openStateDir(dir))).toBe("state_dir_damaged");
    await expect(openStateDir(dir)).rejects.toThrow(
      /keys\.json does not hold \{ tokenKeys, secretsKeys \}; restore it/,
    );
    await expect(openStateDir(dir)).rejects.not.toThrow(/secret-in|"secret"/);
  },
);

test("a folder has one server at a time, by whatever path it is named", async () => {
  const first = await openStateDir(dir);
  expect(await refusal(() => openStateDir(join(dir, "..", dir.split("/").at(-1) ?? "")))).toBe(
    "state_dir_in_use",
  );
  await first.release();
  await (await openStateDir(dir)).release();
});
