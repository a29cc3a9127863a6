/** What a client gets for wrong input: every method is called with a spread of wrong arguments, and no refusal is a fault. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as node from "../../js/src/node/index.ts";
import { lifecycleMethods, sdkMethods, sessionMethods } from "../../js/src/worker/sandbox/surface.ts";
import { callLoosely, getLoosely } from "../support/loosely.ts";
import { startTestServer, type TestServer } from "../support/server.ts";

let server: TestServer;
let itx: Awaited<ReturnType<TestServer["itx"]>>;
let sandbox: object;
let session: object;

beforeAll(async () => {
  server = await startTestServer();
  itx = await server.itx("prj_errors");
  const made = await itx.sandboxes.get("/sandboxes/main").create({ instanceType: "basic" });
  sandbox = made;
  session = await made.createSession({ id: "errors" });
});
afterAll(() => server.close());

const LONG = "x".repeat(70_000);
const wrong: readonly unknown[][] = [
  ...[
    [],
    [undefined],
    [null],
    [7],
    [-1],
    [""],
    [{}],
    [[]],
    [true],
    ["/nope/x"],
    ["a\0b"],
    ["no-such-id"],
    [LONG],
  ],
  ...[
    ["/workspace", 7],
    ["/workspace", "x", 7],
    ["/tmp/f", 9],
    ["/tmp/f", "x", { encoding: "utf-99" }],
  ],
  ...[[{ dir: 7 }], [{ id: 7, dir: "/tmp" }], [{ id: "nope", dir: "/workspace" }], [{ env: 7 }]],
  ...[
    ["true", { timeout: -1 }],
    ["true", { env: 7 }],
    ["true", { env: { "A B": "x" } }],
    ["true", { cwd: 7 }],
  ],
  ...[["get", [7]], ["get", ["x"]], ["get", [3000]], ["destroy", [{}]], ["nope", []], ["get"]],
];
/** These end the life that the other calls need; they take no argument. */
const ending: ReadonlySet<string> = new Set(["destroy", "kill", "sleep", "stop", "restart"]);

const FAULT =
  /\n\s+at |file:\/\/|\.[cm]?[jt]s:\d|Cannot read prop|is not a function|undefined|\[object|No route/;

async function refusals(target: object, methods: readonly string[]): Promise<string[]> {
  const bad: string[] = [];
  for (const method of methods) {
    for (const args of wrong) {
      const shown = `${method}(${JSON.stringify(args).slice(1, -1).slice(0, 60)})`;
      const error = await callLoosely(target, method, ...args).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error === null) continue;
      const { code, message, status, retryable } = Object(error);
      if (typeof code !== "string" || /^(internal_error|unknown_error)$/i.test(code) || FAULT.test(message)) {
        bad.push(`${shown}: ${code}: ${String(message).slice(0, 200)}`);
      }
      if (typeof status !== "number" || status < 400 || status >= 600 || typeof retryable !== "boolean")
        bad.push(`${shown}: ${code} has status ${status}, retryable ${retryable}`);
    }
  }
  return bad;
}

test("no wrong argument of a sandbox's methods is answered by a fault", { timeout: 60_000 }, async () => {
  const methods = [...lifecycleMethods, ...sdkMethods].filter((method) => !ending.has(method));
  expect(await refusals(sandbox, methods)).toEqual([]);
});

test("nor is one of a session's methods", { timeout: 60_000 }, async () => {
  expect(await refusals(session, sessionMethods)).toEqual([]);
});

describe("a refusal says what was got, what is allowed and what to do next", () => {
  const rows: [what: string, call: () => Promise<unknown>, code: string, message: RegExp][] = [
    [
      "a sandbox that is not there",
      () => callLoosely(get("/sandboxes/nope"), "exec", "true"),
      "sandbox_not_found",
      /"\/sandboxes\/nope".*create\(\)/,
    ],
    [
      "a path",
      () => callLoosely(get("/sandboxes/A B"), "exec", "true"),
      "invalid_path",
      /"\/sandboxes\/A B".*U\+0020.*\/sandboxes\/main/,
    ],
    ["no path", () => callLoosely(get(7), "exec", "true"), "invalid_argument", /path is 7; it must be text/],
    [
      "an instance type",
      () => callLoosely(get("/sandboxes/o"), "create", { instanceType: "huge" }),
      "invalid_argument",
      /"huge".*lite, basic/,
    ],
    [
      "a misspelt option",
      () => callLoosely(get("/sandboxes/o"), "create", { typ: "basic" }),
      "invalid_argument",
      /typ.*instanceType/,
    ],
    [
      "a process",
      () => callLoosely(sandbox, "getProcessLogs", "nope"),
      "PROCESS_NOT_FOUND",
      /nope.*listProcesses\(\)/,
    ],
    [
      "a process id",
      () => callLoosely(sandbox, "killProcess", {}),
      "invalid_argument",
      /id is \{\}; it must be an id/,
    ],
    ["a file", () => callLoosely(sandbox, "readFile", "/nope"), "FILE_NOT_FOUND", /\/nope.*listFiles\(\)/],
    [
      "a folder",
      () => callLoosely(sandbox, "readFile", "/workspace"),
      "IS_DIRECTORY",
      /\/workspace.*listFiles\(\)/,
    ],
    [
      "a context",
      () => callLoosely(sandbox, "deleteCodeContext", "nope"),
      "CONTEXT_NOT_FOUND",
      /nope.*listCodeContexts\(\)/,
    ],
    [
      "a tunnel's port",
      () => callLoosely(sandbox, "callTunnels", "get", [80]),
      "invalid_argument",
      /port is 80; .*1024 to 65535/,
    ],
    [
      "an option's type",
      () => callLoosely(sandbox, "startProcess", "true", { cwd: 7 }),
      "invalid_argument",
      /options.cwd is 7; it must be text/,
    ],
    [
      "a session's variable",
      () => callLoosely(session, "setEnvVars", { "A B": "x" }),
      "invalid_env",
      /"A B".*a letter or '_'/,
    ],
    [
      "a command's variable",
      () => callLoosely(sandbox, "exec", "true", { env: { "9": "x" } }),
      "invalid_env",
      /"9".*a letter or '_'/,
    ],
    [
      "a snapshot's handle",
      () => callLoosely(sandbox, "restoreBackup"),
      "invalid_argument",
      /backup is missing; it must be an object/,
    ],
    [
      "a name of letters that no URL has",
      () => callLoosely(get("/sandboxes/ü猫"), "exec", "true"),
      "invalid_path",
      /"\/sandboxes\/ü猫".*U\+00FC/,
    ],
    [
      "a sleepAfter that is huge",
      () => callLoosely(get("/sandboxes/o"), "create", { sleepAfter: 1e300 }),
      "invalid_sleep_after",
      /^sleepAfter is 1e300; it must be a positive number of seconds.*"10m".*100 years/,
    ],
    [
      "a sleepAfter that is no time",
      () => callLoosely(get("/sandboxes/o"), "create", { sleepAfter: "soon" }),
      "invalid_sleep_after",
      /^sleepAfter is "soon"; it must be/,
    ],
    [
      "a stream's path that is too long",
      () => callLoosely(getLoosely(itx.streams, "get", `/${"x".repeat(300)}`), "read"),
      "name_too_long",
      /^The path "\/x+"\.\.\. \(301 bytes\) has 301 bytes; at most 238 are allowed in this project\. Choose a shorter path\.$/,
    ],
    [
      "a sandbox's path that is too long",
      () => callLoosely(get(`/sandboxes/${"x".repeat(300)}`), "create"),
      "name_too_long",
      /^The path "\/sandboxes\/x+"/,
    ],
    [
      "the constructor that every object has",
      () => callLoosely(sandbox, "constructor", "x"),
      "unknown_method",
      /no method constructor; __describe\(\)/,
    ],
    [
      "a namespace that is misspelt",
      () => callLoosely(getLoosely(itx, "sandbox", "x"), "exec"),
      "unknown_method",
      /what is not there|no method sandbox; a project has sandboxes, secrets, egress/,
    ],
    [
      "a connection without a token",
      () => callLoosely(node, "connect", { url: server.url }),
      "invalid_argument",
      /token is missing; mint one/,
    ],
    [
      "a connection to nothing",
      () => callLoosely(node, "connect"),
      "invalid_argument",
      /address of the Worker is undefined; it must be http/,
    ],
    [
      "a connection for a project that is none",
      () => callLoosely(node, "connect", { url: server.url, token: "x", project: "Bad One" }),
      "invalid_project_id",
      /"Bad One".*'B' is not allowed/,
    ],
    [
      "a folder's name in place of options",
      () => callLoosely(node, "open", "folder"),
      "invalid_argument",
      /"folder"; it must be an object such as \{ dir/,
    ],
    ["a method", () => callLoosely(sandbox, "nope"), "unknown_method", /nope.*__describe\(\)/],
    [
      "a fenced method",
      () => callLoosely(sandbox, "exposePort", 8080),
      "method_fenced",
      /exposePort.*tunnels/,
    ],
    [
      "a secret's path",
      () => callLoosely(secret(undefined), "describe"),
      "invalid_argument",
      /path is missing; it must be text/,
    ],
    [
      "a secret that is not there",
      () => callLoosely(secret("/secrets/x"), "describe"),
      "secret_not_found",
      /\/secrets\/x.*set it first/,
    ],
    [
      "a URL",
      () => callLoosely(itx.egress, "fetch", "ftp://a.test/"),
      "invalid_argument",
      /ftp:.*http or https/,
    ],
  ];
  const get = (path: unknown) => getLoosely(itx.sandboxes, "get", path);
  const secret = (path: unknown) => getLoosely(itx.secrets, "get", path);

  test.each(rows)("%s", async (_what, call, code, message) => {
    const error = await call().then(
      () => null,
      (reason: unknown) => Object(reason),
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });
});
