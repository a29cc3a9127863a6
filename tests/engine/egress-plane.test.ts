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

test("each container has an authority of its own, made ahead or not", async () => {
  const outboundSocket = join(folder, "own.sock");
  const plane = new EgressPlane({ outbound: { upstreams: {}, secret: "secret" }, outboundSocket });
  await plane.ready;
  const containers = await Promise.all(
    ["a", "b", "c"].map((id) =>
      plane.listen(join(folder, `${id}.sock`), { id, enableInternet: false, intercepts: [] }),
    ),
  );
  await Promise.all(containers.map(({ listening }) => listening));
  expect(new Set(containers.map(({ certificatePem }) => certificatePem)).size).toBe(3);
  for (const container of containers) container.close();
  await plane.close();
});

test("a relay that cannot be served is told, and closes as any other", async () => {
  const outboundSocket = join(folder, "refused.sock");
  const plane = new EgressPlane({ outbound: { upstreams: {}, secret: "secret" }, outboundSocket });
  await plane.ready;
  const container = { id: "a", enableInternet: false, intercepts: [] };
  const egress = await plane.listen(join(folder, "no", "folder.sock"), container);
  await expect(egress.listening).rejects.toThrow(/ENOENT|EACCES/);
  egress.close();
  await plane.close();
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
