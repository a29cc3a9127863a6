/** A container is started in one that waited, whatever has become of that. */
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EgressPlane } from "../../js/src/engine/egress-plane.ts";
import { type ContainerLimits, Launchers } from "../../js/src/engine/launchers.ts";
import { RunningContainer } from "../../js/src/engine/running-container.ts";
import { sandboxdPath } from "../../js/src/engine/sandboxd-path.ts";
import { descendants } from "../soak/processes.ts";

const limits: ContainerLimits = {
  memoryBytes: 2 ** 28,
  cpuWeight: 100,
  cpuQuota: 1,
  pids: 256,
  diskBytes: 1e8,
};
const folder = mkdtempSync(join(tmpdir(), "running-"));
const logs: string[] = [];
const log = (line: string) => logs.push(line);
let launchers: Launchers;
let egress: EgressPlane;

beforeAll(async () => {
  for (const name of ["run", "scratch"]) mkdirSync(join(folder, name));
  const [runtimeDir, scratchDir] = [join(folder, "run"), join(folder, "scratch")];
  launchers = new Launchers({ binary: await sandboxdPath(), runtimeDir, scratchDir, limits, log });
  egress = new EgressPlane({
    outbound: { upstreams: {}, secret: "secret" },
    outboundSocket: join(folder, "outbound.sock"),
  });
  await egress.ready;
});
afterAll(async () => {
  await Promise.all([launchers.close(), egress.close()]);
  rmSync(folder, { recursive: true });
});

const processes = (name: string) => descendants(process.pid).filter((each) => each.name === name);
const folders = () =>
  ["run", "scratch"].flatMap((name) =>
    readdirSync(join(folder, name), { withFileTypes: true }).filter((each) => each.isDirectory()),
  );

function start(): RunningContainer {
  const message = {
    className: "Sandbox",
    instanceType: "basic",
    enableInternet: false,
    env: {},
    entrypoint: [],
    labels: {},
    intercepts: [],
  };
  const [id, incarnation] = ["0".repeat(64), "1".repeat(36)];
  return new RunningContainer({ id, incarnation, message, limits, launchers, egress, log });
}

async function prepared(): Promise<number> {
  launchers.prepare();
  while (processes("sandboxd-init").length === 0) await new Promise((resolve) => setImmediate(resolve));
  return processes("sandboxd")[0]?.pid ?? 0;
}

async function answers(container: RunningContainer): Promise<void> {
  const socket = await container.connect(3000);
  socket.write("GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1.1 200/);
  socket.destroy();
}

test("it starts in the one that waited", async () => {
  const pid = await prepared();
  const container = start();
  await answers(container);
  expect(processes("sandboxd").map((each) => each.pid)).toEqual([pid]);
  expect(await container.kill()).toMatchObject({ kind: "exited" });
  await container.removed;
  expect(folders()).toEqual([]);
});

test.each(["sandboxd", "sandboxd-init"])(
  "it starts although the %s that waited has just died",
  async (name) => {
    const pid = await prepared();
    // Nobody has heard of it when the container is started, in the same turn.
    process.kill(processes(name)[0]?.pid ?? 0, "SIGKILL");
    const container = start();
    await container.intercept({ kind: "http", address: "own.test" });
    await answers(container);
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    expect(logs.at(-1)).toMatch(/a container that waited is replaced/);
    await container.kill();
    await container.removed;
    expect(folders()).toEqual([]);
  },
);

test("one that is killed as it starts ends, and no other takes its place", async () => {
  await prepared();
  const container = start();
  expect(await container.kill()).toMatchObject({ kind: "exited" });
  await container.removed;
  expect(processes("sandboxd")).toEqual([]);
  expect(folders()).toEqual([]);
});
