/** The egress thread ends when it is told to, whatever it is at. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { EgressPlane } from "../../js/src/engine/egress-plane.ts";

const folder = mkdtempSync(join(tmpdir(), "egress-plane-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("it ends by itself while it makes the keys of the next container", async () => {
  for (let round = 0; round < 12; round++) {
    const outboundSocket = join(folder, `${round}.sock`);
    const plane = new EgressPlane({ outbound: { upstreams: {}, secret: "secret" }, outboundSocket });
    await plane.ready;
    await plane.close();
  }
});

test("a thread that cannot serve is an error of whoever waits for it", async () => {
  const outboundSocket = join(folder, "no", "such", "folder.sock");
  const plane = new EgressPlane({ outbound: { upstreams: {}, secret: "secret" }, outboundSocket });
  await expect(plane.ready).rejects.toThrow(/ENOENT|EACCES/);
  await plane.close();
  const wrong = new EgressPlane({
    outbound: { upstreams: { "a.test": "nowhere" }, secret: "secret" },
    outboundSocket,
  });
  await expect(wrong.ready).rejects.toMatchObject({ code: "invalid_argument", name: "SandboxError" });
  await wrong.close();
});
