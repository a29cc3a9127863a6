/** The shapes of `itx` as a client sees them: every call is a promise, every stream and handle is remote. */
import type { ExecutionSession, ISandbox, TunnelInfo, TunnelOptions } from "@cloudflare/sandbox";

/** What `create` takes. The instance type is one of `core.instanceTypes()`; `basic` without one. */
export interface CreateInput {
  instanceType?: string;
  /** Seconds, or digits with `s`, `m` or `h`. */
  sleepAfter?: string | number;
  keepAlive?: boolean;
  /** Values are conventionally `getSecret("/secrets/…")` placeholders. */
  env?: Record<string, string>;
  /** Lets a value that looks like raw key material through; it would land on the durable stream. */
  allowRawSecrets?: boolean;
}

export interface SandboxEvent {
  offset: number;
  type: string;
  payload: Record<string, unknown>;
  idempotencyKey: string | null;
  createdAt: string;
}

/** The projection of a sandbox's own stream (DESIGN's §6.6 fields). */
export interface SandboxState {
  status: "created" | "running" | "stopped" | "destroyed" | null;
  running: boolean;
  instanceType: string | null;
  lastBackupId: string | null;
  env: Record<string, string>;
  sleepAfter: string | number | null;
  keepAlive: boolean | null;
  offset: number;
}

/** The SDK's surface plus the lifecycle of a pet. `stop()` means `sleep()`. */
export interface SandboxHandle extends Omit<ISandbox, "mountBucket" | "unmountBucket" | "setEnvVars"> {
  create(input?: CreateInput): Promise<SandboxHandle>;
  start(): Promise<void>;
  sleep(): Promise<void>;
  stop(): Promise<void>;
  restart(): Promise<void>;
  kill(): Promise<void>;
  destroy(): Promise<void>;
  setEnvVars(
    vars: Record<string, string | null | undefined>,
    options?: { allowRawSecrets?: boolean },
  ): Promise<void>;
  setSleepAfter(value: string | number): Promise<void>;
  setKeepAlive(keep: boolean): Promise<void>;
  createSession(options?: {
    id?: string;
    env?: Record<string, string>;
    cwd?: string;
  }): Promise<ExecutionSession>;
  getSession(id: string): Promise<ExecutionSession>;
  /** On the embedded engine a tunnel is a loopback URL of the host. */
  readonly tunnels: {
    get(port: number, options?: TunnelOptions): Promise<TunnelInfo>;
    list(): Promise<TunnelInfo[]>;
    destroy(portOrInfo: number | TunnelInfo): Promise<void>;
  };
  readonly processor: {
    snapshot(): Promise<SandboxState>;
    waitUntilEvent(options: { type?: string; offset?: number; timeoutMs?: number }): Promise<SandboxEvent>;
  };
  liveState(): Promise<ReadableStream<SandboxState>>;
  events(options?: { after?: number; limit?: number }): Promise<{ events: SandboxEvent[]; head: number }>;
  __describe(): Promise<Record<string, unknown>>;
}

export interface SandboxListing {
  path: string;
  instanceType: string;
  status: string;
  createdAt: string;
}

export interface SecretDescription {
  path: string;
  version: number;
  origins: string[];
  createdAt: string;
  updatedAt: string;
}

export type Material = string | Record<string, unknown>;

export interface SecretHandle {
  set(input: { material: Material; origins: string[] }): Promise<SecretDescription>;
  rotate(input: { material: Material }): Promise<SecretDescription>;
  describe(): Promise<SecretDescription>;
  delete(): Promise<void>;
}

export interface EgressRule {
  id: string;
  action: "allow" | "deny";
  hosts?: string[];
  schemes?: string[];
  ports?: number[];
  methods?: string[];
  paths?: string[];
  secretPaths?: string[];
}

/** Whether JSON requests to api.openai.com go through AI Gateway, and how long it may answer from its cache; null never. */
export interface GatewaySettings {
  enabled: boolean;
  cacheTtlSeconds: number | null;
}

export interface EgressPolicyDocument {
  default: "allow" | "deny";
  rules: EgressRule[];
}

export interface StreamHandle {
  read(options?: { after?: number; limit?: number }): Promise<{ events: SandboxEvent[]; head: number }>;
  tail(options?: { after?: number }): Promise<ReadableStream<SandboxEvent>>;
  waitFor(offset: number, timeoutMs?: number): Promise<SandboxEvent>;
}

export interface Connection {
  kind: "github";
  name: string;
  secretPath: string;
}

/** One project, seen from outside. */
export interface Itx {
  readonly sandboxes: {
    get(path: string): SandboxHandle;
    list(options?: { limit?: number; cursor?: string; instanceType?: string; status?: string }): Promise<{
      sandboxes: SandboxListing[];
      cursor: string | null;
    }>;
  };
  readonly secrets: { get(path: string): SecretHandle; list(): Promise<SecretDescription[]> };
  readonly egress: {
    getPolicy(): Promise<EgressPolicyDocument>;
    setPolicy(policy: EgressPolicyDocument): Promise<EgressPolicyDocument>;
    getGateway(): Promise<GatewaySettings>;
    setGateway(settings: { enabled: boolean; cacheTtlSeconds?: number | null }): Promise<GatewaySettings>;
    test(request: {
      method?: string;
      url: string;
      headers?: [string, string][];
    }): Promise<Record<string, unknown>>;
    fetch(request: Request): Promise<Response>;
  };
  readonly streams: { get(path: string): StreamHandle };
  readonly connections: {
    list(): Promise<Connection[]>;
    set(connection: Connection): Promise<void>;
    delete(connection: { kind: string; name: string }): Promise<void>;
  };
}
