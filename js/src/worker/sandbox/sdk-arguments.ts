/**
 * What the SDK's methods take, by name. The SDK trusts its types; a client in JavaScript has none, so that a wrong argument would
 * come back as a fault from deep inside. Here it is refused by its name before anything runs.
 */
import * as v from "valibot";
import type { Core } from "../../core/types.ts";
import { invalidArgument } from "../errors.ts";
import type { sdkMethods, sessionMethods } from "./surface.ts";

type Inner = "tunnels.get" | "tunnels.destroy" | "session.setEnvVars";
type Method = (typeof sdkMethods)[number] | (typeof sessionMethods)[number] | Inner;
type Parameter = readonly [name: string, schema: v.GenericSchema];

const MAX_ID_LENGTH = 256;
/** Where the SDK's own server listens. */
const SERVER_PORT = 3000;
const LANGUAGES = ["python", "javascript", "typescript"];

const text = v.string("text");
const flag = v.optional(v.boolean("true or false"));
const number = v.optional(v.number("a number"));
const optionalText = v.optional(text);
const texts = v.optional(v.array(text, "a list of text"));
const callback = v.optional(v.function("a function"));
const variables = v.record(text, v.nullish(text), "an object of names and values");
const env = v.optional(variables);
const id = v.pipe(
  v.string("an id"),
  v.minLength(1, "an id, not empty"),
  v.maxLength(MAX_ID_LENGTH, `an id of at most ${MAX_ID_LENGTH} characters`),
);
const sessionId: Parameter = ["sessionId", v.optional(id)];
const language = v.optional(v.picklist(LANGUAGES, `one of ${LANGUAGES.join(", ")}`));

function object(entries: v.ObjectEntries): v.GenericSchema {
  return v.looseObject(entries, "an object");
}
function options(entries: v.ObjectEntries): Parameter {
  return ["options", v.optional(object(entries))];
}

const inSession = { sessionId: v.optional(id) };
const watched = { recursive: flag, include: texts, exclude: texts, ...inSession };
const execOptions = { env, cwd: optionalText, encoding: optionalText, stdin: optionalText, ...inSession };
const calledBack = { onOutput: callback, onComplete: callback, onError: callback, onExit: callback };
const codeOptions = {
  language,
  envVars: env,
  timeout: number,
  context: v.optional(object({ id })),
  onStdout: callback,
  onStderr: callback,
  onResult: callback,
  onError: callback,
};
const portRule = `a port from 1024 to 65535 other than ${SERVER_PORT}`;
const port = v.pipe(
  v.number(portRule),
  v.integer(portRule),
  v.minValue(1024, portRule),
  v.maxValue(65535, portRule),
  v.notValue(SERVER_PORT, portRule),
);
const path: Parameter = ["path", text];
const code: Parameter = ["code", text];
const processId: Parameter = ["id", id];

/** The command of `exec` and `execStream` is the core's to judge. */
const parameters = {
  exec: [["command", v.unknown()], options({ ...execOptions, ...calledBack, stream: flag })],
  execStream: [["command", v.unknown()], options(execOptions)],
  startProcess: [["command", text], options({ ...execOptions, ...calledBack, processId: v.optional(id) })],
  listProcesses: [sessionId],
  getProcess: [processId, sessionId],
  killProcess: [processId, ["signal", optionalText]],
  getProcessLogs: [processId],
  streamProcessLogs: [processId, options({})],
  gitCheckout: [
    ["repoUrl", text],
    options({
      branch: optionalText,
      targetDir: optionalText,
      depth: number,
      cloneTimeoutMs: number,
      ...inSession,
    }),
  ],
  mkdir: [path, options({ recursive: flag, ...inSession })],
  writeFile: [
    path,
    ["content", v.union([v.string(), v.instance(ReadableStream)], "text or a ReadableStream")],
    options({ encoding: optionalText, ...inSession }),
  ],
  deleteFile: [path, sessionId],
  renameFile: [["oldPath", text], ["newPath", text], sessionId],
  moveFile: [["sourcePath", text], ["destinationPath", text], sessionId],
  readFile: [path, options({ encoding: optionalText, ...inSession })],
  readFileStream: [path, options(inSession)],
  listFiles: [path, options({ recursive: flag, includeHidden: flag, ...inSession })],
  exists: [path, sessionId],
  watch: [path, options(watched)],
  checkChanges: [path, options({ ...watched, since: optionalText })],
  createSession: [
    options({ id: v.optional(id), env, cwd: optionalText, isolation: flag, commandTimeoutMs: number }),
  ],
  getSession: [["sessionId", id]],
  deleteSession: [["sessionId", id]],
  createCodeContext: [options({ language, cwd: optionalText, envVars: env, timeout: number })],
  runCode: [code, options(codeOptions)],
  runCodeStream: [code, options(codeOptions)],
  deleteCodeContext: [["contextId", id]],
  createBackup: [
    ["options", object({ dir: text, name: optionalText, ttl: number, excludes: texts, gitignore: flag })],
  ],
  restoreBackup: [["backup", object({ id, dir: text })]],
  callTunnels: [
    ["method", v.picklist(["get", "list", "destroy"], "get, list or destroy")],
    ["values", v.array(v.unknown(), "a list of arguments")],
  ],
  "session.setEnvVars": [["envVars", variables]],
  "tunnels.get": [["port", port], options({ name: optionalText })],
  "tunnels.destroy": [["portOrInfo", v.union([port, object({ port })], `${portRule}, or what get() gave`)]],
  setContainerTimeouts: [
    [
      "timeouts",
      object({ instanceGetTimeoutMS: number, portReadyTimeoutMS: number, waitIntervalMS: number }),
    ],
  ],
  setLabels: [["labels", v.record(text, text, "an object of names and values")]],
} satisfies Partial<Record<Method, readonly Parameter[]>>;

const parametersOf = new Map<string, readonly Parameter[]>(Object.entries(parameters));

/**
 * Throws `invalid_argument` for the first argument that the method cannot take, and the core's `invalid_env` for a variable that cannot
 * be one. More arguments than a method knows are left to the SDK.
 */
export function checkArguments(core: Core, method: string, args: readonly unknown[]): void {
  checkTypes(method, args);
  if (method === "callTunnels" && Array.isArray(args[1])) checkTypes(`tunnels.${args[0]}`, args[1]);
  const given = method === "session.setEnvVars" ? args[0] : args.map(variablesOf).find(Boolean);
  const names = Object.keys(given ?? {});
  if (names.length === 0) return;
  core.mergeEnv({ stored: {}, changes: Object.fromEntries(names.map((name) => [name, ""])) });
}

/** The variables of an options object. */
function variablesOf(value: unknown): object | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const variables = "env" in value ? value.env : "envVars" in value ? value.envVars : undefined;
  return typeof variables === "object" && variables !== null ? variables : undefined;
}

function checkTypes(method: string, args: readonly unknown[]): void {
  for (const [index, [name, schema]] of (parametersOf.get(method) ?? []).entries()) {
    const issue = v.safeParse(schema, args[index], { abortEarly: true }).issues?.[0];
    if (issue === undefined) continue;
    const inner = v.getDotPath(issue);
    throw invalidArgument(inner === null ? name : `${name}.${inner}`, issue.input, issue.message);
  }
}
