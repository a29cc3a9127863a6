import type * as Egress from "./types-egress.ts";
import type { LifecycleCore } from "./types-lifecycle.ts";

export type * from "./types-egress.ts";
export type * from "./types-lifecycle.ts";

/** Who an object is: its project and its stream path within it. */
export interface Identity {
  projectId: string;
  path: string;
}

export type InstanceTypeName = "lite" | "basic" | "standard-1" | "standard-2" | "standard-3" | "standard-4";

/** One row of the table of instance types. */
export interface InstanceType {
  name: InstanceTypeName;
  vcpu: number;
  vcpuSixteenths: number;
  memoryMib: number;
  diskMb: number;
  diskGb: number;
  /** Name of the Worker's Durable Object binding. */
  binding: string;
  className: string;
  isDefault: boolean;
  /** How many containers of the type one environment may run at a time. */
  maxInstances: { dev: number; preview: number; prd: number };
}

export interface Limits {
  /** More is refused before it is copied into the core. */
  inputBytes: number;
  nesting: number;
  nameBytes: number;
  projectIdBytes: number;
  /** One event as JSON text. */
  eventBytes: number;
  templateBodyBytes: number;
  snapshotTtlSeconds: number;
}

export interface ErrorCatalogueEntry {
  code: string;
  status: number;
  retryable: boolean;
  meaning: string;
}

/** An event as it is handed to a stream. */
export interface EventInput {
  type: string;
  payload: unknown;
}

/** An event that was found valid. */
export interface SandboxEvent {
  type: string;
  payload: Record<string, unknown>;
}

/** An event as a fold reads it: what a stream returns, with or without its other fields. */
export interface FoldableEvent {
  /** From 1. */
  offset: number;
  type: string;
  payload?: unknown;
}

export interface EventCatalogueEntry {
  type: string;
  /** Where it is appended, in words. */
  stream: string;
  /** Whether a sandbox's projection reads it. */
  folded: boolean;
  description: string;
  example: SandboxEvent;
  /** JSON Schema (2020-12) of the payload. */
  schema: Record<string, unknown>;
}

export type SandboxStatus = "created" | "running" | "stopped" | "destroyed";

/** What a sandbox's events add up to. */
export interface ProjectionState {
  birthCertificate: { config: { instanceType: string } } | null;
  status: SandboxStatus | null;
  running: boolean;
  instanceType: string | null;
  lastBackupId: string | null;
  env: Record<string, string>;
  sleepAfter: number | string | null;
  keepAlive: boolean;
  /** Of the newest event that was folded; 0 for none. */
  offset: number;
  /** Ranges of offsets below `offset` that were never folded; absent for a stream that was read without holes. */
  missing?: [first: number, last: number][];
}

/** A fold that stays in the core between batches. */
export interface Projection {
  /** Folds a batch; bytes are a JSON array of events. Gives the offset reached. */
  apply(events: readonly FoldableEvent[] | Uint8Array): number;
  state(): ProjectionState;
  /** Gives the memory back. The collector does so too, later. */
  free(): void;
  [Symbol.dispose](): void;
}

/** What `create` is asked for. */
export interface ClaimInput {
  instanceType?: string;
  sleepAfter?: number | string;
  keepAlive?: boolean;
  env?: Record<string, string>;
  allowRawSecrets?: boolean;
}

/** The payload of a `create-requested` event, or that whole event. */
export type Claim = (ClaimInput & { path: string }) | { payload: unknown };

/** What the sandbox's own object remembers of its birth. */
export interface BirthRecord {
  creationPending?: boolean;
  destroyed?: boolean;
  createdAt?: string;
}

export interface ClaimRequest {
  path: string;
  claim: Claim | null;
  record: BirthRecord | null;
  /** Whether an attempt runs in this object right now. */
  inFlight: boolean;
  /** null for any verb but create. */
  input: ClaimInput | null;
}

export type ClaimResolution =
  | { outcome: "claim"; event: SandboxEvent & { idempotencyKey: string } }
  | { outcome: "resume"; createdAt?: string }
  | { outcome: "use" };

export interface Route {
  path: string;
  instanceType: InstanceTypeName;
  binding: string;
  className: string;
}

/** What containers take of an account. */
export interface Resources {
  memoryMib: number;
  vcpuSixteenths: number;
  diskMb: number;
}

export interface QuotaRequest {
  /** Absent means all instance types. */
  environments: { name: string; instanceTypes?: string[] }[];
  quota?: Partial<Resources>;
}

export interface QuotaCheck {
  environments: {
    name: string;
    caps: { instanceType: InstanceTypeName; maxInstances: number }[];
    resources: Resources;
  }[];
  total: Resources;
  quota: Resources;
  exceeded: ("memory" | "vcpu" | "disk")[];
}

/** One step of a Worker's Durable Object migrations. */
export interface Migration {
  tag: string;
  newClasses?: string[];
  newSqliteClasses?: string[];
  renamedClasses?: { from: string; to: string }[];
  deletedClasses?: string[];
}

export interface StateCore {
  durableObjectName(identity: Identity): string;
  parseDurableObjectName(name: string): Identity;
  assertProjectId(id: string): string;
  assertSandboxPath(path: string): string;
  assertSecretPath(path: string): string;
  assertStreamPath(path: string): string;
  /** `/a/b/c` gives `/`, `/a` and `/a/b`. */
  streamAncestors(path: string): string[];
  /** Identity is write-once: gives what holds, or refuses what differs. */
  ensureIdentity(call: { stored: Identity | null; given: Identity }): Identity;

  instanceTypes(): InstanceType[];
  limits(): Limits;
  errorCatalogue(): ErrorCatalogueEntry[];
  eventCatalogue(): EventCatalogueEntry[];

  validateEvent(event: EventInput): SandboxEvent;
  resolveClaim(request: ClaimRequest): ClaimResolution;
  /** The class that hosts a claimed sandbox. */
  routeClaim(claim: Claim | null, path?: string): Route;
  /** @throws SandboxError `containers_not_enabled` where nothing plays containers; asked before a name is claimed */
  assertContainers(engineMode: string): void;

  /** Bytes are a JSON array of events. */
  foldProjection(events: readonly FoldableEvent[] | Uint8Array, state?: ProjectionState): ProjectionState;
  createProjection(state?: ProjectionState): Projection;

  checkQuota(request: QuotaRequest): QuotaCheck;
  planMigrations(request: { applied: Migration[]; classes: string[]; deletable?: string[] }): {
    migrations: Required<Migration>[];
  };
}

/** The whole core. Every method is synchronous, takes and gives plain data, and throws `SandboxError` on a refusal. */
export interface Core extends StateCore, LifecycleCore, Egress.EgressCore {
  /**
   * Calls a function of the boundary by its name, with its arguments or their JSON text: for test vectors.
   * @internal
   */
  call(
    name: string,
    input: object | string,
    body?: string | Uint8Array,
  ): { value: unknown; body?: Uint8Array };
}
