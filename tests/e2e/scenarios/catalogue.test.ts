/** cat-e2: a create whose answer is lost after the claim. The same call heals it, and nothing is made twice. */
import { expect, test } from "vitest";
import { refusal, startTestServer } from "../../support/server.ts";
import { buildTestWorker } from "../../worker/support/test-worker.ts";

const path = "/sandboxes/healed";
const input = { instanceType: "lite", env: { A: "1" } } as const;

test("cat-e2: a lost answer can be retried", async () => {
  await using server = await startTestServer({
    workerDir: await buildTestWorker("tests/worker/fault-entry.ts"),
  });
  const itx = await server.itx("prj_lost");
  const sandbox = () => itx.sandboxes.get(path);
  // The object ends at the first point after the claim was appended.
  await fetch(`${server.url}/faults?at=1`, { method: "POST" });
  await expect(sandbox().create(input)).rejects.toThrow();

  const { events: before } = await itx.streams.get("/sandboxes").read({ limit: 100 });
  expect(before.filter(({ type }) => type.endsWith("create-requested"))).toHaveLength(1);
  await expect(sandbox().exec("true")).rejects.toMatchObject({
    code: "creation_unfinished",
    message: expect.stringMatching(/creation of the sandbox at .* was interrupted/),
  });

  await sandbox().create(input);
  expect((await sandbox().exec("echo $A")).stdout).toBe("1\n");
  expect(await refusal(() => sandbox().create(input))).toBe("sandbox_exists");

  const { events: catalogue } = await itx.streams.get("/sandboxes").read({ limit: 100 });
  const requested = catalogue.filter(({ type }) => type.endsWith("create-requested"));
  expect(requested).toEqual(before.filter(({ type }) => type.endsWith("create-requested")));
  const { events: own } = await itx.streams.get(path).read({ limit: 100 });
  expect(own.filter(({ type }) => type.endsWith("/created"))).toHaveLength(1);
  const { sandboxes } = await itx.sandboxes.list();
  expect(sandboxes.map(({ path: listed, createdAt }) => [listed, createdAt])).toEqual([
    [path, requested[0]?.createdAt],
  ]);
});
