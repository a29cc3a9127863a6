import type { ProjectionState, SandboxStatus } from "../../../js/src/core/types.ts";
import { type Fields, isObject, refusal } from "./refuse.ts";

interface FoldedEvent {
  offset: number;
  type: string;
  payload: Fields | undefined;
}

const PREFIX = "events.iterate.com/sandbox/";
const STATUSES: readonly unknown[] = ["created", "running", "stopped", "destroyed", null];

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

const emptyState = (): ProjectionState => ({
  birthCertificate: null,
  status: null,
  running: false,
  instanceType: null,
  lastBackupId: null,
  env: {},
  sleepAfter: null,
  keepAlive: false,
  offset: 0,
});

/** What a stream's events add up to; bytes are a JSON array of events. */
export function foldProjection(given: unknown, start?: Partial<ProjectionState>): ProjectionState {
  const state = { ...emptyState(), ...start };
  if (!STATUSES.includes(state.status)) throw refusal("invalid_input", "status");
  const events = given instanceof Uint8Array ? parseEvents(given) : given;
  if (!Array.isArray(events)) throw refusal("invalid_input", "events is no array");
  return events
    .map(readEvent)
    .sort(byOffset)
    .reduce(apply, { ...state, env: { ...state.env } });
}

function parseEvents(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decoder.decode(bytes));
  } catch (error) {
    throw refusal("invalid_json", String(error));
  }
}

function readEvent(event: unknown): FoldedEvent {
  if (!isObject(event)) throw refusal("invalid_event", "is not an object");
  const { offset, type, payload } = event;
  if (typeof offset !== "number" || !Number.isSafeInteger(offset) || offset < 1) {
    throw refusal("invalid_event", "offset");
  }
  return {
    offset,
    type: typeof type === "string" ? type : "",
    payload: isObject(payload) ? payload : undefined,
  };
}

const byOffset = (left: FoldedEvent, right: FoldedEvent) => left.offset - right.offset;

function apply(state: ProjectionState, event: FoldedEvent): ProjectionState {
  const { offset } = event;
  if (offset <= state.offset) {
    if (state.missing?.some(([first, last]) => offset >= first && offset <= last)) {
      throw refusal("out_of_order", `offset ${offset} was missed`);
    }
    return state;
  }
  if (offset > state.offset + 1) {
    state.missing ??= [];
    state.missing.push([state.offset + 1, offset - 1]);
  }
  state.offset = offset;
  if (state.status !== "destroyed" && event.type.startsWith(PREFIX)) {
    applyNamed(state, event.type.slice(PREFIX.length), event.payload);
  }
  return state;
}

function applyNamed(state: ProjectionState, name: string, payload: Fields | undefined): void {
  switch (name) {
    case "started":
      setStatus(state, "running");
      return;
    case "stopped":
    case "destroyed":
      setStatus(state, name);
      return;
    case "created":
      applyCreated(state, payload?.config);
      return;
    case "backup-created":
      if (typeof payload?.backupId === "string" && payload.backupId !== "")
        state.lastBackupId = payload.backupId;
      return;
    case "configured":
      if (payload !== undefined) applyConfigured(state, payload);
      return;
  }
}

function setStatus(state: ProjectionState, status: SandboxStatus): void {
  state.status = status;
  state.running = status === "running";
}

function applyCreated(state: ProjectionState, config: unknown): void {
  if (state.instanceType !== null || !isObject(config)) return;
  const { instanceType } = config;
  if (typeof instanceType !== "string" || instanceType === "") return;
  state.instanceType = instanceType;
  state.birthCertificate = { config: { instanceType } };
  state.status ??= "created";
}

function applyConfigured(state: ProjectionState, { env, sleepAfter, keepAlive }: Fields): void {
  if (isObject(env)) {
    for (const [key, value] of Object.entries(env)) {
      if (typeof value === "string") state.env[key] = value;
      else if (value === null) delete state.env[key];
    }
  }
  if (typeof sleepAfter === "string" || typeof sleepAfter === "number" || sleepAfter === null) {
    state.sleepAfter = sleepAfter;
  }
  if (typeof keepAlive === "boolean" || keepAlive === null) state.keepAlive = keepAlive ?? false;
}
