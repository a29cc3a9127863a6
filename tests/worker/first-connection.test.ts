import { expect, test } from "vitest";
import { connectAtOnce } from "../../js/src/worker/sandbox/first-connection.ts";

class Sdk {
  starts = 0;
  life: object | undefined = {};
  async startContainerForRPC(): Promise<void> {
    this.starts += 1;
  }
}

test("the connection after a boot asks nothing, and every later one does", async () => {
  const sandbox = new Sdk();
  connectAtOnce(sandbox, () => sandbox.life);
  await sandbox.startContainerForRPC();
  expect(sandbox.starts).toBe(0);
  await sandbox.startContainerForRPC();
  expect(sandbox.starts).toBe(1);
});

test.each([
  ["another life began", {}],
  ["it ended", undefined],
])("it asks where %s meanwhile", async (_, later) => {
  const sandbox = new Sdk();
  connectAtOnce(sandbox, () => sandbox.life);
  sandbox.life = later;
  await sandbox.startContainerForRPC();
  expect(sandbox.starts).toBe(1);
});

test("a container that had ended before it could connect is asked for", async () => {
  const sandbox = new Sdk();
  sandbox.life = undefined;
  connectAtOnce(sandbox, () => sandbox.life);
  await sandbox.startContainerForRPC();
  expect(sandbox.starts).toBe(1);
});

test("of two boots the last counts", async () => {
  const sandbox = new Sdk();
  connectAtOnce(sandbox, () => sandbox.life);
  sandbox.life = {};
  connectAtOnce(sandbox, () => sandbox.life);
  await sandbox.startContainerForRPC();
  expect(sandbox.starts).toBe(0);
});

test("an SDK without that step is told at once", () => {
  expect(() => connectAtOnce({}, () => undefined)).toThrow(/no method startContainerForRPC/);
});
