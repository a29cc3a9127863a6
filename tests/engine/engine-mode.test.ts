import { expect, test } from "vitest";
import { engineMode } from "../../js/src/node/engine-mode.ts";

test.each([
  [{}, "embedded"],
  [{ SANDBOX_ENGINE: "" }, "embedded"],
  [{ SANDBOX_ENGINE: "docker" }, "docker"],
  [{ SANDBOX_ENGINE: "none" }, "none"],
  [{ OS_SANDBOX_CONTAINER_LOCAL_DEV: "true" }, "docker"],
  [{ OS_SANDBOX_CONTAINER_LOCAL_DEV: "true", SANDBOX_ENGINE: "embedded" }, "embedded"],
])("%o is %s", (env, mode) => {
  expect(engineMode(env, "linux")).toBe(mode);
});

test("an unknown engine is refused with what is allowed", () => {
  expect(() => engineMode({ SANDBOX_ENGINE: "podman" }, "linux")).toThrow(
    /"podman".*embedded, docker or none/,
  );
});

test.each(["darwin", "win32"])("%s is told to use Docker", (platform) => {
  expect(() => engineMode({}, platform)).toThrow(/SANDBOX_ENGINE=docker/);
  expect(engineMode({ SANDBOX_ENGINE: "docker" }, platform)).toBe("docker");
});
