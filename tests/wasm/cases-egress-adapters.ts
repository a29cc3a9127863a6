import { createHash } from "node:crypto";
import { isSandboxError } from "../../js/src/core/error.ts";
import type {
  Core,
  CoreRequest,
  EgressRule,
  HeaderPairs,
  Material,
  OpenAiRewrite,
} from "../../js/src/core/types.ts";

/** What a case gives and what it wants: plain JSON, so loosely typed. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Row = { [key: string]: Json };
export type Adapter = (core: Core, input: Row) => Json;

const CONFIGURED = "events.iterate.com/sandbox/configured";
const NOW = 1_700_000_000_000;

export const rowsOf = (value: Json | undefined): Row[] => value as Row[];
const rowOf = (value: Json | undefined): Row => (value ?? {}) as Row;
const textOf = (value: Json | undefined): string => value as string;
const headersOf = (value: Json | undefined): HeaderPairs => (Array.isArray(value) ? value.map(pairOf) : []);

function pairOf(value: Json): readonly [name: string, value: string] {
  const [name, text] = Array.isArray(value) ? value : [];
  if (typeof name !== "string" || typeof text !== "string")
    throw new TypeError(`a case's header is a name and a value, not ${JSON.stringify(value)}`);
  return [name, text];
}

function refusal(error: unknown): Row {
  if (!isSandboxError(error)) throw error;
  return {
    ok: false,
    code: error.code,
    status: error.status,
    message: error.message,
    ...(error.details as Row),
  };
}

function attempt(run: () => Row): Row {
  try {
    return run();
  } catch (error) {
    return refusal(error);
  }
}

/** A call that takes one thing or a list of them. */
const each =
  (one: Adapter): Adapter =>
  (core, input) =>
    Array.isArray(input.items)
      ? { results: rowsOf(input.items).map((item) => one(core, item)) }
      : one(core, input);

const envSet: Adapter = (core, { stored, vars }) =>
  attempt(() => {
    const merged = core.mergeEnv({ stored: stored as Record<string, string>, changes: rowOf(vars) });
    return { stored: merged.stored, event: { type: CONFIGURED, payload: { env: merged.configured } } };
  });

/** A refusal leaves what was stored. */
const envSetOrKeep: Adapter = (core, input) => ({
  stored: input.stored ?? {},
  ...(envSet(core, input) as Row),
});

const githubToken: Adapter = (core, { connections }) => {
  const list = connections as { connection: string; integration: string }[];
  return { value: core.githubTokenEnv(list).GH_TOKEN ?? null };
};

/** A `hold` is ours to neither allow nor deny; for matching it is a rule like another. */
const matchRule: Adapter = (core, { rules, requests }) => {
  const compiled = rowsOf(rules).map(
    ({ ruleKey, match, verdict }): EgressRule => ({
      id: textOf(ruleKey),
      action: verdict === "deny" ? "deny" : "allow",
      ...rowOf(match),
    }),
  );
  using policy = core.compileEgressPolicy({ default: "allow", rules: compiled });
  const results = rowsOf(requests).map(({ url, method, secretPaths }) => {
    const headers = (secretPaths as string[]).map((path): [string, string] => [
      "x-key",
      `getSecret("${path}")`,
    ]);
    const { rule } = policy.decide({ url: textOf(url), method: textOf(method), headers, webSocket: false });
    return { matched: rule };
  });
  return { results };
};

const originAllowed: Adapter = (core, { allow, urls }) => {
  const results = (urls as string[]).map((url) => {
    const { ok } = attempt(() => {
      core.checkSecretPin({ origins: allow as string[], url });
      return { ok: true };
    });
    return ok ?? false;
  });
  return { results };
};

const redirect: Adapter = (core, { request, response, allow }) =>
  attempt(() => {
    const { method, url, headers, body } = rowOf(request);
    const { status, location } = rowOf(response);
    const hop = core.nextHop({
      request: {
        method: textOf(method),
        url: textOf(url),
        headers: headersOf(headers),
        ...(body === undefined ? {} : { body: textOf(body) }),
      },
      response: { status: status as number, location: textOf(location) },
      origins: allow as string[],
    });
    const next = { method: hop.method, url: hop.url, headers: hop.headers, body: hop.body ? "same" : "none" };
    return { ok: true, next };
  });

const denyResponse: Adapter = (core, { code, ruleKey, detail }) => {
  const response = core.denyResponse({ code: textOf(code), rule: textOf(ruleKey), detail: textOf(detail) });
  const { rule, ...body } = JSON.parse(response.body) as Row;
  const contentType = response.headers.find(([name]) => name === "content-type")?.[1] ?? null;
  return { status: response.status, contentType, body: { ...body, ruleKey: rule ?? null } };
};

const downstreamHeaders: Adapter = (core, { request, response }) => {
  const pairs = core.webSocketResponseHeaders(
    { headers: headersOf(rowOf(request).headers) },
    { status: 101, headers: headersOf(rowOf(response).headers) },
  );
  return { headers: Object.fromEntries(pairs) };
};

/** The way of a request through the door and a secret: scan, look up, pin, select, substitute. */
function substituteOne(core: Core, given: CoreRequest, secrets: Row): Row {
  const { references } = core.scanPlaceholders(given);
  const values: Record<string, string> = {};
  for (const { kind, path, field } of references) {
    const secret = secrets[path];
    if (secret === undefined) return { ok: false, code: "secret_not_found", path };
    core.checkSecretPin({ origins: rowOf(secret).allow as string[], url: given.url });
    const key = field === undefined ? `${kind}:${path}` : `${kind}:${path}#${field}`;
    values[key] = core.selectSecretField(rowOf(secret).material as Material, field);
  }
  const out = core.substitutePlaceholders(given, values);
  const body = out.body === undefined || out.body === given.body ? "unchanged" : textOf(out.body as string);
  return { ok: true, url: out.url, headers: out.headers, body, lookups: references.map(({ path }) => path) };
}

/** A request of ours names one secret, so a case with several is asked a header at a time; one refusal refuses all. */
const substitute: Adapter = (core, { request, secrets }) => {
  const { url, headers, body } = rowOf(request);
  const ask = (some: HeaderPairs): Row =>
    attempt(() => {
      const given = { url: textOf(url), headers: some, ...(body ? { body: textOf(body) } : {}) };
      return substituteOne(core, given, rowOf(secrets));
    });
  const whole = ask(headersOf(headers));
  if (whole.code !== "secret_reference_foreign") return whole;
  const answers = headersOf(headers).map((pair) => ask([pair]));
  const refused = answers.find(({ ok }) => ok !== true);
  return refused ?? { ...answers[0], headers: answers.flatMap((answer) => answer.headers as Json[]) };
};

const selectField: Adapter = (core, { material, field }) =>
  attempt(() => ({
    ok: true,
    value: core.selectSecretField(material as Material, (field ?? undefined) as string),
  }));

function rewrite(core: Core, request: Row, cacheTtlSeconds: number | null, config: Row): OpenAiRewrite {
  const bytes = request.bodyBase64 && new Uint8Array(Buffer.from(textOf(request.bodyBase64), "base64"));
  return core.rewriteOpenAiRequest({
    method: textOf(request.method),
    url: textOf(request.url),
    headers: headersOf(request.headers),
    body: bytes || textOf(request.body ?? ""),
    gateway: { apiKey: textOf(config.apiKey), cacheTtlSeconds, metadata: rowOf(config.metadata) },
  });
}

const openAiRoute: Adapter = (core, { config, requests }) => ({
  results: rowsOf(requests).map((request): Row => {
    const ttl = rowOf(config).cacheTtlSeconds as number | null;
    const answer = rewrite(core, request, ttl, rowOf(config));
    if (answer.notRouted !== undefined) return { routed: false };
    const text = typeof answer.body === "string" ? answer.body : new TextDecoder().decode(answer.body);
    const headers = Object.fromEntries(answer.headers);
    return { routed: true, endpoint: answer.endpoint, query: JSON.parse(text), queryRaw: text, headers };
  }),
});

const isOpenAi: Adapter = (core, { urls }) => ({
  results: (urls as string[]).map((url) => {
    const request = { method: "POST", url, headers: [["content-type", "application/json"]], body: "{}" };
    const answer = rewrite(core, request, null, { apiKey: "k" });
    return answer.notRouted !== "not_openai";
  }),
});

const cacheHeaders: Adapter = each((core, { cacheTtlSeconds, body }) => {
  const request = {
    method: "POST",
    url: "https://api.openai.com/v1/chat/completions",
    headers: [["content-type", "application/json"]],
    body: JSON.stringify(body),
  };
  const answer = rewrite(core, request, cacheTtlSeconds as number | null, { apiKey: "k" });
  if (answer.notRouted !== undefined) return { notRouted: answer.notRouted };
  const names = ["cf-aig-skip-cache", "cf-aig-cache-ttl"];
  const headers = Object.fromEntries(answer.headers.filter(([name]) => names.includes(name)));
  if (answer.cacheKeyInput === undefined) return headers;
  return { ...headers, "cf-aig-cache-key": createHash("sha256").update(answer.cacheKeyInput).digest("hex") };
});

const KEYS = {
  R2_ACCESS_KEY_ID: "k",
  R2_SECRET_ACCESS_KEY: "s",
  CLOUDFLARE_R2_ACCOUNT_ID: "a",
  BACKUP_BUCKET_NAME: "b",
};

const backupOptions: Adapter = each((core, { projectId, path, canPresign }) => {
  const identity = { projectId: textOf(projectId), path: textOf(path) };
  const manifest = core.snapshotManifest({ identity, now: NOW, id: "b-1", env: canPresign ? KEYS : {} });
  return { ...core.backupOptions(manifest) };
});

const backupEndpoint: Adapter = (core, { values }) => ({
  results: (values as string[]).map((value) =>
    attempt(() => {
      const identity = { projectId: "prj_1", path: "/sandboxes/a" };
      const env = { ...KEYS, BACKUP_BUCKET_ENDPOINT: value };
      core.snapshotManifest({ identity, now: NOW, id: "b-1", env });
      return { ok: true, origin: value === "" ? null : new URL(value).origin };
    }),
  ),
});

const sleepAfter: Adapter = (core, { values }) => ({
  results: (values as Json[]).map((value) =>
    attempt(() => ({ ok: true, seconds: core.validateSleepAfter(value) })),
  ),
});

const validateTimeout: Adapter = (core, { values }) => ({
  results: (values as Json[]).map((timeout) => {
    const answer = attempt(() => {
      core.validateExec({ command: "true", timeout: timeout === null ? Number.NaN : timeout });
      return { ok: true };
    });
    return answer.ok ?? false;
  }),
});

const validateCommand: Adapter = (core, { commands }) => ({
  results: (commands as string[]).map((command) =>
    attempt(() => {
      core.validateExec({ command });
      return { ok: true, command };
    }),
  ),
});

/** From a case's call to ours. */
export const adapters: Record<string, Adapter> = {
  "env.effective": each((core, layers) => ({ env: core.effectiveEnv(layers as never) })),
  "env.set": each(envSetOrKeep),
  "env.githubToken": githubToken,
  "egress.matchRule": matchRule,
  "egress.originAllowed": originAllowed,
  "egress.redirect": each(redirect),
  "egress.denyResponse": denyResponse,
  "ws.downstreamHeaders": downstreamHeaders,
  "secrets.substitute": substitute,
  "secrets.selectField": each(selectField),
  "openai.route": openAiRoute,
  "openai.isOpenAi": isOpenAi,
  "openai.cacheHeaders": cacheHeaders,
  "backup.options": backupOptions,
  "config.backupEndpoint": backupEndpoint,
  "config.sleepAfter": sleepAfter,
  "exec.validateTimeout": validateTimeout,
  "exec.validateCommand": validateCommand,
};

/** Calls that are no decision of the core, and what decides instead. */
export const elsewhere: Record<string, string> = {
  "backup.validateDir": "the SDK checks it before the agent is asked",
  "backup.filter": "mksquashfs inside the sandbox, with the agent's excludes",
  "backup.onSleep": "the lifecycle decider: tests/vectors/lifecycle.json",
  "backup.validateEntries": "unsquashfs inside the sandbox's own namespaces",
  "exec.decodeChunks": "the SDK decodes streams",
  "exec.parseSse": "the SDK parses the agent's event streams",
  "processes.validGroup": "the sandbox object builds the kill command",
  "processes.afterKill": "the agent's process table",
  "processes.list": "the agent's process table",
  "files.validatePath": "the agent's file routes",
  "files.decodeWrite": "the agent's file routes",
  "files.resolve": "the agent's file routes",
  "files.readLimit": "the agent's file routes",
  "sessions.shouldRedial": "the sandbox object's session set-up",
  "sessions.afterShellExit": "the agent's sessions",
  "engine.status": "the agent's error table",
  "engine.repoName": "the agent's git route",
  "engine.validatePort": "the SDK and the agent's port routes",
};
