/** A snapshot that only rpc can carry back: elsewhere it is refused before the restore, and it is there when rpc asks for it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startTestServer } from "../../support/server.ts";

const path = "/sandboxes/large";
const digest = "sha256sum /workspace/large | cut -c1-64";

test.each(["http", "websocket"])(
  "over %s it is refused with a clear error, and the handle is kept",
  async (transport) => {
    const stateDir = mkdtempSync(join(tmpdir(), "itx-archives-"));
    try {
      let before = "";
      {
        await using server = await startTestServer({ stateDir, keep: true });
        const sandbox = await (await server.itx("prj_large")).sandboxes
          .get(path)
          .create({ instanceType: "standard-1" });
        before = (await sandbox.exec(`head -c 21M /dev/urandom > /workspace/large; ${digest}`)).stdout;
        await sandbox.sleep();
      }
      {
        await using server = await startTestServer({
          stateDir,
          keep: true,
          vars: { SANDBOX_TRANSPORT: transport },
        });
        const sandbox = (await server.itx("prj_large")).sandboxes.get(path);
        for (const attempt of [1, 2])
          await expect(sandbox.exec("true"), `attempt ${attempt}`).rejects.toThrow(
            /archive has \d+ bytes.*SANDBOX_TRANSPORT=rpc/,
          );
      }
      await using server = await startTestServer({ stateDir, keep: true });
      expect((await (await server.itx("prj_large")).sandboxes.get(path).exec(digest)).stdout).toBe(before);
    } finally {
      rmSync(stateDir, { recursive: true, force: true });
    }
  },
);
