import { loadCore } from "#core";
import type { WorkerEnv } from "../env.ts";
import { invalidArgument } from "../errors.ts";
import { ClaimIndex, type ClaimRow, CREATE_REQUESTED, type SandboxStatus } from "./claim-index.ts";
import { EventLog } from "./event-log.ts";
import { StreamDurableObject } from "./stream-durable-object.ts";
import type { StoredEvent } from "./types.ts";

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 1_000;
const STATUSES: readonly SandboxStatus[] = ["claimed", "created", "running", "stopped", "destroyed"];

/** What a claim fixes about a sandbox: the payload of `create-requested` without the path. */
export interface ClaimInput {
  instanceType: string;
  sleepAfter?: string | number;
  keepAlive?: boolean;
  env?: Record<string, string>;
}

export interface Lookup {
  path: string;
  instanceType: string;
  status: SandboxStatus;
  claim: StoredEvent;
}

export interface ListOptions {
  limit?: number;
  cursor?: string;
  instanceType?: string;
  status?: string;
}

export interface Listing {
  sandboxes: ClaimRow[];
  /** Handed back as `cursor` it gives the next page; null on the last. */
  cursor: string | null;
}

/** The `/sandboxes` stream of a project: its `create-requested` events are the claims, one a path, ever. */
export class CatalogueDurableObject extends StreamDurableObject {
  readonly #claims: ClaimIndex;
  readonly #log: EventLog;

  constructor(ctx: DurableObjectState, env: WorkerEnv) {
    const claims = new ClaimIndex(ctx.storage);
    const log = new EventLog(ctx.storage, (event) => claims.onInsert(event));
    super(ctx, env, log);
    this.#claims = claims;
    this.#log = log;
  }

  /** The claim on a path: the caller's, or the one that was there first. Racing callers all get the same event. */
  async claim(request: {
    path: string;
    input: ClaimInput;
  }): Promise<{ event: StoredEvent; created: boolean }> {
    const { path, input } = request;
    (await loadCore()).assertSandboxPath(path);
    const existing = await this.lookup(path);
    if (existing !== null) return { event: existing.claim, created: false };
    const payload = Object.fromEntries(
      Object.entries({ path, ...input }).filter(([, value]) => value !== undefined),
    );
    const key = `sandbox-create-requested:${path}`;
    const outcome = await this.appendEvents([{ type: CREATE_REQUESTED, payload, idempotencyKey: key }]);
    const [event] = outcome.events;
    if (event === undefined) throw new Error("an append of one event gave none back");
    return { event, created: outcome.appended === 1 };
  }

  /** One indexed read. A path that was never claimed gives null, and nothing is written. */
  async lookup(path: string): Promise<Lookup | null> {
    const row = this.#claims.find(path);
    if (row === undefined) return null;
    const claim = this.#log.at(row.claimOffset);
    if (claim === undefined) throw new Error(`the claim on ${path} has lost its event ${row.claimOffset}`);
    return { path: row.path, instanceType: row.instanceType, status: row.status, claim };
  }

  /** The claimed paths in order, destroyed ones too. */
  async list(options: ListOptions = {}): Promise<Listing> {
    const { limit = DEFAULT_LIMIT, cursor = "", instanceType, status } = options;
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
      throw invalidArgument("limit", limit, `a whole number from 1 to ${MAX_LIMIT}`);
    }
    if (typeof cursor !== "string") throw invalidArgument("cursor", cursor, "the cursor of an earlier page");
    if (status !== undefined && !isStatus(status)) {
      throw invalidArgument("status", status, `one of ${STATUSES.join(", ")}`);
    }
    const types = (await loadCore()).instanceTypes().map((type): string => type.name);
    if (instanceType !== undefined && !types.includes(instanceType)) {
      throw invalidArgument("instanceType", instanceType, `one of ${types.join(", ")}`);
    }
    const rows = this.#claims.list(
      {
        ...(instanceType === undefined ? {} : { instanceType }),
        ...(status === undefined ? {} : { status }),
      },
      cursor,
      limit + 1,
    );
    const sandboxes = rows.slice(0, limit);
    return { sandboxes, cursor: rows.length > limit ? (sandboxes.at(-1)?.path ?? null) : null };
  }

  /** Moves a sandbox's status by a completion on its own stream, at that stream's offset. */
  async completion(event: { path: string; type: string; offset: number }): Promise<void> {
    this.#claims.complete(event.path, event.type, event.offset);
  }
}

function isStatus(value: string): value is SandboxStatus {
  return STATUSES.some((status) => status === value);
}
