/** The lifecycle decider's values as they cross the boundary. `core/include/sandboxes/lifecycle.hpp` says what each means. */

/** Who a sandbox is. */
export interface SandboxIdentity {
  projectId: string;
  path: string;
}

/** What `create` takes. */
export interface SandboxCreateInput {
  instanceType: string;
  /** Seconds, or `<digits>(s|m|h)`. */
  sleepAfter?: string | number;
  keepAlive?: boolean;
  env?: Record<string, string>;
  /** Accept values that look like key material although they land on the stream. */
  allowRawSecrets?: boolean;
}

export interface SandboxRecord extends SandboxIdentity {
  /** Of the first attempt, ms since the epoch. */
  createdAt: number;
  input: {
    instanceType: string;
    sleepAfter?: string | number;
    keepAlive?: boolean;
    env?: Record<string, string>;
  };
}

/** The newest finished snapshot. */
export interface SnapshotHandle {
  id: string;
  expiresAt: number;
  /** The manifest as JSON text, as `parseSnapshotHandle` reads it. */
  manifest: string;
}

export type ContainerState =
  | { kind: "down" }
  | { kind: "booting"; incarnation: number; announced: boolean }
  | { kind: "fresh"; incarnation: number }
  | {
      kind: "settingUp";
      incarnation: number;
      step: "restore" | "env" | "session" | "git";
      attempt: number;
      configVersion: number;
    }
  | { kind: "ready"; incarnation: number; configVersion: number; applying: boolean }
  | { kind: "snapshotting"; incarnation: number; configVersion: number; reason: "asked" | "idle" | "restart" }
  | {
      kind: "tearingDown";
      incarnation: number;
      configVersion: number;
      announced: boolean;
      wasReady: boolean;
    };

export interface SandboxConfig {
  env: Record<string, string>;
  sleepAfter?: string | number;
  keepAlive: boolean;
  version: number;
}

export type LifeState =
  | { kind: "unborn" }
  | { kind: "pending"; record: SandboxRecord; attempt: boolean }
  | {
      kind: "live";
      record: SandboxRecord;
      config: SandboxConfig;
      snapshot?: SnapshotHandle;
      container: ContainerState;
    }
  | {
      kind: "destroying";
      record: SandboxRecord;
      incarnation: number;
      announced: boolean;
      tornDown: boolean;
      working: boolean;
    }
  | { kind: "destroyed"; record: SandboxRecord };

/** Everything about one sandbox. The shell stores it as it is and never changes it. */
export interface LifecycleState {
  version: 1;
  life: LifeState;
  incarnation: number;
  outbox: { name: string; type: string; key: string; payload: Record<string, unknown> }[];
  inFlight: number;
  outboxStatus: "idle" | "appending" | "failed";
  outboxError: string;
  failure: {
    incarnation: number;
    kind: "boot" | "restore" | "setUp" | "tearDown";
    step: string;
    reason: string;
  } | null;
  /** The newest snapshot that was asked for and came to nothing. */
  lostSnapshot?: { incarnation: number; reason: string };
}

export type LifecycleRequest =
  | { kind: "create"; input: SandboxCreateInput }
  | { kind: "assertCreated" | "start" | "sleep" | "restart" | "kill" | "destroy" }
  | { kind: "setEnvVars"; changes: Record<string, string | null>; allowRawSecrets?: boolean }
  | { kind: "setSleepAfter"; sleepAfter: string | number }
  | { kind: "setKeepAlive"; keepAlive: boolean }
  | { kind: "admit"; method: string };

export type LifecycleCommand = LifecycleRequest & {
  /** Whom the caller means; must be who this is. */
  identity?: SandboxIdentity;
  /** From a `wait` reply, when the same command is asked again. */
  since?: number;
};

export type LifecycleSignal =
  | {
      kind: "objectLoaded" | "containerStarted" | "containerStopped" | "idleExpired" | "workFinished";
    }
  | {
      kind: "bootDone" | "restoreDone" | "envApplied" | "sessionOpened" | "gitConfigured" | "tornDown";
      incarnation: number;
    }
  | {
      kind: "snapshotDone";
      incarnation: number;
      id: string;
      createdAt: number;
      ttlSeconds: number;
      manifest: string;
    }
  | { kind: "snapshotFailed"; incarnation: number; error: string; presigned: boolean }
  | { kind: "restoreFailed"; incarnation: number; error: string; expired: boolean; presigned: boolean }
  | {
      kind: "effectFailed";
      incarnation: number;
      effect: "boot" | "applyEnv" | "openSession" | "configureGit" | "tearDown";
      error: string;
      interrupted: boolean;
    }
  | { kind: "eventsAppended"; keys: string[] }
  | { kind: "appendFailed"; error: string };

export interface LifecycleContext {
  /** ms since the epoch */
  now: number;
  /** Of the class that asks. */
  instanceType: string;
  /** `ctx.container.running` */
  containerRunning: boolean;
  /** Why the newest container ended, as far as the platform knows. */
  containerEnd?: string;
}

export type LifecycleEffect =
  | { kind: "boot"; incarnation: number }
  | { kind: "restore"; incarnation: number; handle: SnapshotHandle; bindingOnly: boolean }
  | { kind: "applyEnv"; incarnation: number; env: Record<string, string> }
  | { kind: "openSession"; incarnation: number; delayMs: number }
  | { kind: "configureGit"; incarnation: number }
  | { kind: "takeSnapshot"; incarnation: number; bindingOnly: boolean }
  | { kind: "tearDown"; incarnation: number }
  | { kind: "applySettings"; sleepAfter?: string | number; keepAlive: boolean }
  | { kind: "abortObject" };

export interface LifecycleEvent {
  type: string;
  payload: Record<string, unknown>;
  /** Awaited, kept until it is on the stream, and keyed; others are best effort. */
  durable: boolean;
  idempotencyKey?: string;
}

export interface LifecycleDecision {
  state: LifecycleState;
  events: LifecycleEvent[];
  effects: LifecycleEffect[];
  reply: { kind: "proceed" } | { kind: "wait"; since: number };
  /** Whether a stored part of the state changed. */
  persist: boolean;
  /** Whether anything did: who waits has to ask again. */
  changed: boolean;
}

/** A method of the SDK that sandboxes do not offer, and what to use. */
export interface FencedMethod {
  method: string;
  advice: string;
}

/** The part of the core that decides lives. */
export interface LifecycleCore {
  initialState(): LifecycleState;
  /** @throws SandboxError where the command is refused; nothing has changed then */
  decide(call: {
    state: LifecycleState;
    command: LifecycleCommand;
    context: LifecycleContext;
  }): LifecycleDecision;
  react(call: {
    state: LifecycleState;
    signal: LifecycleSignal;
    context: LifecycleContext;
  }): LifecycleDecision;
  evolve(call: {
    state: LifecycleState;
    event: { type: string; payload: Record<string, unknown> };
  }): LifecycleState;
  fencedMethods(): FencedMethod[];
}
