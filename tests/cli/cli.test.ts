/** The command line against a server of its own, as a person and as a script would use it. */
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Terminal } from "../support/itx-command.ts";

const terminal = new Terminal();
const itx = (args: string, input?: string) => terminal.sh(`itx ${args}`, input);
const spawnItx = (args: string[]) => terminal.start(args);

beforeAll(async () => {
  const { status, stderr, stdout } = await terminal.itx(["dev", "--detach", "--port", "0"]);
  expect(status, stderr).toBe(0);
  expect(stdout).toMatch(/serving .* at http:\/\/127\.0\.0\.1:\d+, pid \d+/);
});
afterAll(() => terminal.close());

test("a detached server's folder can be entered by its user alone", () => {
  expect(statSync(`${terminal.folder}/.itx`).mode & 0o777).toBe(0o700);
});

describe("the life of a sandbox", () => {
  test("create, exec, sleep, exec again, list, events, destroy", async () => {
    expect((await itx("sandboxes create life --type lite --env STAGE=test")).status).toBe(0);
    expect((await itx("sandboxes exec life -- sh -c 'echo $STAGE > /workspace/stage'")).status).toBe(0);
    expect((await itx("sandboxes sleep life")).status).toBe(0);
    expect((await itx("sandboxes exec life -- cat /workspace/stage")).stdout).toBe("test\n");
    expect((await itx("sandboxes list")).stdout).toMatch(/^\/sandboxes\/life\tlite\trunning\t/);
    const events = await itx("sandboxes events life");
    expect(events.stdout).toContain("sandbox/backup-created");
    expect((await itx("sandboxes restart life")).status).toBe(0);
    expect((await itx("sandboxes destroy life")).status).toBe(0);
    const again = await itx("--json sandboxes create life --type lite");
    expect(again.status).toBe(1);
    expect(JSON.parse(again.stderr).error.code).toBe("sandbox_destroyed");
  });

  test("exec passes the command's exit code, stdout and stderr, and words as they were given", async () => {
    await itx("sandboxes create words");
    const outcome = await terminal.itx([
      "sandboxes",
      "exec",
      "words",
      "--",
      "sh",
      "-c",
      'echo "$0" "$1"; echo no >&2; exit 7',
      "a  b",
      "it's",
    ]);
    expect(outcome).toEqual({ status: 7, stdout: "a  b it's\n", stderr: "no\n" });
    const json = await itx("--json sandboxes exec words -- 'echo one; exit 3'");
    expect(json.status).toBe(3);
    expect(JSON.parse(json.stdout)).toEqual({ exitCode: 3, stdout: "one\n", stderr: "" });
    await itx("sandboxes destroy words");
  });

  test("what is in a workspace when the server is stopped is there when it is started again", async () => {
    await itx("sandboxes create stopped --type lite");
    await itx("sandboxes exec stopped -- 'echo kept > /workspace/note'");
    expect(await itx("dev --stop")).toMatchObject({ status: 0, stdout: expect.stringMatching(/has ended/) });
    expect((await terminal.itx(["dev", "--detach", "--port", "0"])).status).toBe(0);
    expect((await itx("sandboxes exec stopped -- cat /workspace/note")).stdout).toBe("kept\n");
    await itx("sandboxes destroy stopped");
  });

  test("a failure of exec itself ends with 125 and the code of the error", async () => {
    const outcome = await itx("sandboxes exec nobody -- true");
    expect(outcome.status).toBe(125);
    expect(outcome.stderr).toMatch(/sandbox_not_found/);
    expect((await itx("sandboxes events nobody")).status).toBe(1);
  });
});

test("start, a shell's exit code, and the output of a background process", async () => {
  await itx("sandboxes create verbs --type lite");
  expect((await itx("sandboxes start verbs")).status).toBe(0);
  expect((await itx("sandboxes list")).stdout).toMatch(/^\/sandboxes\/verbs\tlite\trunning\t/m);
  const shell = await itx("sandboxes shell verbs", "echo in $((40 + 2)); exit 7\n");
  expect(shell.status, shell.stderr).toBe(7);
  expect(shell.stdout).toContain("in 42");
  const start = `const p = await itx.sandboxes.get("/sandboxes/verbs").startProcess("echo out; echo err >&2");
    await p.waitForExit(); return p.id;`;
  const id: string = JSON.parse((await terminal.itx(["run", "-e", start])).stdout);
  expect((await itx("sandboxes logs verbs")).stdout).toMatch(new RegExp(`^${id}\t`, "m"));
  expect(await itx(`sandboxes logs verbs ${id}`)).toEqual({ status: 0, stdout: "out\n", stderr: "err\n" });
  await itx("sandboxes destroy verbs");
});

test("connections: set, list, remove", async () => {
  await itx("secrets set github --fields --origin https://github.com", '{"accessToken":"gho_example"}');
  const set = await itx("connections set acme --secret /secrets/github");
  expect(set.status, set.stderr).toBe(0);
  expect((await itx("connections list")).stdout).toBe("github\tacme\t/secrets/github\n");
  expect((await itx("connections rm acme")).status).toBe(0);
  expect((await itx("connections list")).stdout).toBe("");
  const again = await itx("connections rm acme");
  expect(again).toMatchObject({
    status: 1,
    stdout: "",
    stderr: expect.stringContaining("there is no github connection acme"),
  });
  await itx("secrets rm github");
});

test("a server in the foreground ends in peace at Ctrl-C, and lets its folder go", async () => {
  await using server = spawnItx(["--dir", "foreground", "dev", "--port", "0"]);
  await server.line(/serving .*foreground at http:\/\/127\.0\.0\.1:\d+ \(Ctrl-C ends it\)/);
  expect(await server.end("SIGINT")).toBe(0);
  expect((await itx("--dir foreground sandboxes list")).stderr).toMatch(/unreachable.*itx dev --detach/);
});

test("a server without containers refuses to create, and leaves the name free", async () => {
  const none = (args: string) => terminal.sh(`SANDBOX_ENGINE=none itx --dir none ${args}`);
  expect((await none("dev --detach --port 0")).status).toBe(0);
  for (const again of [1, 2]) {
    const refused = await none("--json sandboxes create early");
    expect([again, JSON.parse(refused.stderr).error]).toMatchObject([
      again,
      {
        code: "containers_not_enabled",
        message: expect.stringMatching(/^Container is not enabled: .*SANDBOX_ENGINE=embedded/),
      },
    ]);
  }
  expect((await none("sandboxes exec early -- true")).stderr).toMatch(/sandbox_not_found/);
  expect((await none("sandboxes list")).stdout).toBe("");
  expect(await none("run -e 'return (await itx.streams.get(\"/sandboxes\").read()).events'")).toMatchObject({
    stdout: "[]\n",
  });
  expect((await none("dev --stop")).status).toBe(0);
  const embedded = (args: string) => itx(`--dir none ${args}`);
  expect((await embedded("dev --detach --port 0")).status).toBe(0);
  expect((await embedded("sandboxes create early --type lite")).status).toBe(0);
  await embedded("dev --stop");
  expect((await none("dev --detach --port 0")).status).toBe(0);
  expect((await none("sandboxes exec early -- true")).stderr).toMatch(/containers_not_enabled/);
  await none("dev --stop");
});

test("run has an itx in scope, as in a smoke test", async () => {
  const code = `const path = "/sandboxes/smoke";
    const sb = await itx.sandboxes.get(path).create({ instanceType: "lite" });
    const r = await sb.exec("ls /");
    return { exitCode: r.exitCode, stdout: r.stdout };`;
  const outcome = await terminal.itx(["run", "--context", "prj_smoke", "-e", code]);
  expect(outcome.status, outcome.stderr).toBe(0);
  const result = JSON.parse(outcome.stdout);
  expect(result.exitCode).toBe(0);
  expect(result.stdout.split("\n")).toContain("workspace");
  await terminal.itx([
    "run",
    "--context",
    "prj_smoke",
    "-e",
    'await itx.sandboxes.get("/sandboxes/smoke").destroy()',
  ]);
});

test("secrets take material from standard input only, and never show it", async () => {
  const set = await itx("secrets set weather --origin https://api.weather.test", "wk-123");
  expect(set.stdout).toBe("/secrets/weather stored, version 1\n");
  const list = await itx("--json secrets list");
  expect(JSON.parse(list.stdout)).toMatchObject([{ path: "/secrets/weather", version: 1 }]);
  expect(list.stdout).not.toContain("wk-123");
  const bad = await itx("secrets set structured --fields --origin https://api.weather.test", "wk-123");
  expect(bad.status).toBe(2);
  expect(bad.stderr).not.toContain("wk-123");
  expect((await itx("secrets rm weather")).status).toBe(0);
  const again = await itx("--json secrets rm weather");
  expect(again).toMatchObject({ status: 1, stdout: "" });
  expect(JSON.parse(again.stderr)).toMatchObject({
    error: { code: "secret_not_found", message: "there is no secret /secrets/weather" },
  });
});

test("egress: show, set from standard input, test a request without sending it", async () => {
  const policy = JSON.stringify({
    default: "deny",
    rules: [{ id: "one", action: "allow", hosts: ["one.test"] }],
  });
  expect((await itx("egress set -", policy)).status).toBe(0);
  expect(JSON.parse((await itx("egress show")).stdout)).toEqual(JSON.parse(policy));
  const decision = JSON.parse((await itx("--json egress test https://one.test/x")).stdout);
  expect(decision).toMatchObject({ kind: "forward", rule: "one" });
  expect((await itx("egress test https://two.test/x")).stdout).toMatch(/^deny/);
  await terminal.itx(["run", "-e", 'return (await itx.egress.fetch("https://two.test/x")).status']);
  await using tail = spawnItx(["egress", "tail"]);
  await tail.line(/\tegress\/.*\t/);
  expect(await tail.end("SIGINT")).toBe(0);
});

test("a token of one project is refused for another by every command that names it", async () => {
  const token = (await itx("token --context prj_one --expires 60")).stdout.trim();
  const url = JSON.parse((await terminal.sh("cat .itx/server.json")).stdout).url;
  expect((await itx(`--url ${url} --token ${token} --context prj_one sandboxes list`)).status).toBe(0);
  const other = await itx(`--url ${url} --token ${token} --context prj_two sandboxes list`);
  expect(other.status).toBe(1);
  expect(other.stderr).toMatch(/unauthorized/);
});

describe("what a person meets", () => {
  test.each([
    ["sandboxes", 2],
    ["nonsense", 2],
    ["--help", 0],
    ["sandboxes exec --help", 0],
    ["completion bash", 0],
    ["completion fish", 0],
    ["completion tcsh", 2],
  ])("itx %s ends with %i", async (args, status) => {
    expect((await itx(args)).status).toBe(status);
  });

  // Each is a process of its own, and they share nothing but the server that none of them changes.
  test.concurrent.each([
    ["egress set /nope", 1, /file_unreadable: the policy: "\/nope" is not there; give a file/],
    ["run /nope.js", 1, /file_unreadable: the script: "\/nope.js" is not there/],
    ["run -e 'return ('", 1, /invalid_script: -e is no JavaScript/],
    [
      "--dir up dev --port 0 --upstream a.test=nowhere",
      1,
      /invalid_argument: .*a\.test is "nowhere"; .*127\.0\.0\.1:9000/,
    ],
    [
      "--dir up dev --port abc",
      2,
      /'--port <port>' argument 'abc' is invalid\. It must be a whole number from 0 to 65535/,
    ],
    ["--dir up dev --port 99999", 2, /'99999' is invalid\. It must be a whole number from 0 to 65535/],
    ["token --expires abc", 2, /'abc' is invalid\. It must be a whole number of at least 1/],
    ["token --context 'Bad One'", 1, /invalid_project_id: .*"Bad One"/],
    ["sandboxes events life --after x", 2, /'x' is invalid\. It must be a whole number/],
    ["egress test https://a.test -H bad", 2, /'bad' is invalid\. It must be a name, a colon and a value/],
    ["--context 'Bad One' sandboxes list", 1, /invalid_project_id: .*"Bad One"/],
    [
      "--url ftp://a.test --token x sandboxes list",
      1,
      /invalid_argument: .*"ftp:\/\/a\.test"; it must be http/,
    ],
    ["sandboxes create ü", 1, /invalid_path: .*"\/sandboxes\/ü".*U\+00FC.*\/sandboxes\/main/],
    [
      "sandboxes exec main ls -la",
      2,
      /unknown option '-la'\n\(the command comes after --, as in: itx sandboxes exec/,
    ],
    [
      "--dir up engine --worker x -- no-such-program",
      1,
      /program_not_found: .*"no-such-program" on the PATH; install it/,
    ],
    ["sandboxes create", 2, /missing required argument 'name'\n\(add --help/],
    ["run -e 'throw new Error(\"mine\")'", 1, /script_failed:.* mine/],
    [
      "run -e 'return itx.sandbox.get(1)'",
      1,
      /unknown_method: get was asked of what is not there.*a project has sandboxes, secrets/,
    ],
    ["--dir server.txt/x dev --port 0", 1, /state_dir_unusable: .*is below a file/],
    ["--dir up dev --port 0 --upstream-ca /nope", 1, /file_unreadable: --upstream-ca: "\/nope" is not there/],
  ])("itx %s is refused in words", async (args, status, message) => {
    writeFileSync(`${terminal.folder}/server.txt`, "a file");
    const outcome = await itx(args);
    expect(outcome.stderr).toMatch(message);
    expect(outcome.stderr).not.toMatch(/\n\s+at |ENOENT/);
    expect(outcome.status).toBe(status);
  });

  test("no server: the message says how to start one", async () => {
    const outcome = await itx("--dir elsewhere sandboxes list");
    expect(outcome.status).toBe(1);
    expect(outcome.stderr).toMatch(/itx dev --detach/);
  });

  test("a second server on the folder is refused, with the first one's address", async () => {
    const outcome = await itx("dev --detach --port 0");
    expect(outcome.status).toBe(1);
    expect(outcome.stderr).toMatch(/server_running.*http:\/\/127/);
  });

  test("a port that is taken is told, with nothing of what an earlier server wrote", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = Object(taken.address());
    await terminal.sh("mkdir -p taken && echo 'of an earlier server' > taken/dev.log");
    for (const detach of ["", "--detach"]) {
      const { status, stderr } = await itx(`--dir taken dev --port ${port} ${detach}`);
      expect(stderr).toMatch(
        new RegExp(`^itx: address_in_use: something listens on 127.0.0.1:${port} already; .*0 is`),
      );
      expect(stderr).not.toMatch(/earlier server/);
      expect(status).toBe(1);
    }
    taken.close();
  });

  test("a request that is none is told as that", async () => {
    expect((await itx("egress test nonsense")).stdout).toMatch(/^deny: .*not absolute.*http, https/);
  });

  test("a reader that has seen enough ends the command without a word", async () => {
    const { stderr, stdout } = await terminal.sh("itx sandboxes --help | head -1; echo ${PIPESTATUS[0]}");
    expect(stdout).toMatch(/^Usage.*\n0\n$/);
    expect(stderr).toBe("");
    expect((await itx("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("doctor says by what means each part works", async () => {
    const { status, stdout } = await itx("--json doctor");
    const checks: { check: string; ok: boolean; required: boolean; means: string }[] = JSON.parse(stdout);
    expect(checks.length).toBeGreaterThan(4);
    expect(status).toBe(checks.every(({ ok, required }) => ok || !required) ? 0 : 1);
  });
});
