import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { dockerHandover, startDocker } from "../../js/src/node/docker-mode.ts";
import { refusal } from "../support/server.ts";

const options = { config: "/app/wrangler.jsonc", stateDir: "/app/.itx", host: "127.0.0.1", port: 8787 };

test("wrangler gets the configuration, the address, the folder and the egress sidecar of this machine", () => {
  expect(dockerHandover(options, {}, "arm64")).toEqual({
    args: [
      "dev",
      "--config",
      "/app/wrangler.jsonc",
      "--ip",
      "127.0.0.1",
      "--port",
      "8787",
      "--persist-to",
      "/app/.itx/wrangler",
      "--env-file",
      "/app/.itx/docker.env",
    ],
    env: {
      MINIFLARE_CONTAINER_EGRESS_IMAGE: "cloudflare/proxy-everything:3cb1195",
      MINIFLARE_CONTAINER_EGRESS_IMAGE_PLATFORM: "linux/arm64",
    },
  });
  expect(dockerHandover(options, {}, "x64").env.MINIFLARE_CONTAINER_EGRESS_IMAGE_PLATFORM).toBe(
    "linux/amd64",
  );
});

test("what the environment names is kept", () => {
  const env = {
    MINIFLARE_CONTAINER_EGRESS_IMAGE: "mirror.test/proxy:1",
    MINIFLARE_CONTAINER_EGRESS_IMAGE_PLATFORM: "linux/amd64",
  };
  expect(dockerHandover(options, env, "arm64").env).toEqual(env);
});

/** Only these programs are found. */
function onPath(programs: Record<string, string>): void {
  const folder = mkdtempSync(join(tmpdir(), "docker-mode-"));
  for (const [name, script] of Object.entries(programs))
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  process.env.PATH = folder;
}
const { PATH } = process.env;
afterEach(() => {
  process.env.PATH = PATH;
});

const start = () => startDocker({ ...options, config: "/nowhere/wrangler.jsonc" }, {}, () => undefined);

test("without Docker, that is what is said first, then what else is missing", async () => {
  onPath({});
  expect(await refusal(start)).toBe("docker_mode_failed");
  await expect(start()).rejects.toThrow(
    /^SANDBOX_ENGINE=docker: Docker is not installed: .*; install Docker, or: .*\. Also, \/nowhere\/wrangler\.jsonc is missing/,
  );
});

test("an engine that does not answer is told with its own words", async () => {
  onPath({ docker: "echo 'Cannot connect to the Docker daemon' >&2; exit 1" });
  await expect(start()).rejects.toThrow(
    /its engine does not answer \(Cannot connect to the Docker daemon\); start/,
  );
});

test("a configuration that is missing is named, with what writes it", async () => {
  onPath({ docker: "echo 27.0" });
  expect(await refusal(start)).toBe("docker_mode_failed");
  await expect(start()).rejects.toThrow(/\/nowhere\/wrangler\.jsonc is missing.*wrangler:config/);
});
