/** What the core is measured against: the same work in plain JavaScript, as one would write it. */

interface Event {
  offset: number;
  type: string;
  payload: Record<string, unknown> | null;
}

interface State {
  status: string | null;
  running: boolean;
  instanceType: string | null;
  lastBackupId: string | null;
  env: Record<string, string>;
  sleepAfter: unknown;
  keepAlive: boolean;
  offset: number;
}

export function jsFold(events: Event[]): State {
  const state: State = {
    status: null,
    running: false,
    instanceType: null,
    lastBackupId: null,
    env: {},
    sleepAfter: null,
    keepAlive: false,
    offset: 0,
  };
  for (const event of events.toSorted((left, right) => left.offset - right.offset)) {
    if (event.offset <= state.offset) continue;
    state.offset = event.offset;
    if (state.status === "destroyed") continue;
    foldOne(state, event);
  }
  return state;
}

function foldOne(state: State, { type, payload }: Event): void {
  switch (type) {
    case "events.iterate.com/sandbox/created":
      state.instanceType ??= String(Object(payload?.config).instanceType);
      state.status ??= "created";
      break;
    case "events.iterate.com/sandbox/started":
    case "events.iterate.com/sandbox/stopped":
    case "events.iterate.com/sandbox/destroyed":
      state.running = type.endsWith("started");
      state.status = state.running ? "running" : type.slice(type.lastIndexOf("/") + 1);
      break;
    case "events.iterate.com/sandbox/backup-created":
      state.lastBackupId = String(payload?.backupId);
      break;
    case "events.iterate.com/sandbox/configured":
      for (const [key, value] of Object.entries(Object(payload?.env))) {
        if (typeof value === "string") state.env[key] = value;
        else delete state.env[key];
      }
      break;
  }
}

/** Whether the body is a JSON object, and its text with the usage asked for. */
export function jsIsOpenAiBody(text: string): string | null {
  const body: unknown = JSON.parse(text);
  if (typeof body !== "object" || body === null || Array.isArray(body)) return null;
  const fields = new Map<string, unknown>(Object.entries(body));
  if (fields.get("stream") !== true || fields.has("stream_options")) return text;
  return JSON.stringify({ ...body, stream_options: { include_usage: true } });
}

export function jsDurableObjectName({ projectId, path }: { projectId: string; path: string }): string {
  if (!/^[a-z0-9][a-z0-9_-]{0,62}$/.test(projectId)) throw new TypeError("project id");
  if (new URL(`https://host${path}`).pathname !== path) throw new TypeError("path");
  return `${projectId}.iterate${path}`;
}
