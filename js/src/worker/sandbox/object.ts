/** What callers may ask of a sandbox's object over RPC. */
import type { ProjectionState } from "../../core/types.ts";
import type { SandboxCreateInput, SandboxIdentity } from "../../core/types-lifecycle.ts";
import type { StoredEvent } from "../stream/types.ts";
import type { ProjectionWait } from "./own-projection.ts";

export interface CreateArguments extends SandboxIdentity {
  input: SandboxCreateInput;
  /** The claim that led here; its time is the sandbox's birthday. */
  claim: StoredEvent;
}

export interface InvokeArguments extends SandboxIdentity {
  /** One of `surface.ts`. */
  method: string;
  args: unknown[];
  /** The session that the method is meant for; without it the sandbox itself. */
  sessionId?: string;
}

/** What `__describe()` tells: no more than a stream's reader knows, beside the state of the container. */
export interface SandboxDescription extends SandboxIdentity {
  className: string;
  instanceType: string;
  life: string;
  container: string;
  incarnation: number;
  methods: string[];
  fenced: { method: string; advice: string }[];
}

/** What an object that was killed is aborted with; for whoever asked for it, that is success. */
export const KILLED = "killed by its owner";

export interface SandboxObject {
  prepare(): Promise<void>;
  create(request: CreateArguments): Promise<void>;
  assertCreated(identity: SandboxIdentity): Promise<void>;
  /** Checks the identity and calls a method, in one round trip. */
  invoke(request: InvokeArguments): Promise<unknown>;
  projectionSnapshot(): Promise<ProjectionState>;
  projectionWaitUntil(wait: ProjectionWait): Promise<ProjectionState>;
  egressIdentity(): Promise<SandboxIdentity>;
  __describe(): Promise<SandboxDescription>;
  fetch(request: Request): Promise<Response>;
}
