import type { Identity } from "./types.ts";

/** Order and repeats matter, as on the wire. */
export type HeaderPairs = readonly (readonly [name: string, value: string])[];

/** A request as the core sees it. */
export interface CoreRequest {
  url: string;
  headers: HeaderPairs;
  body?: string | Uint8Array;
}

/** What a placeholder names. Its key is `secret:<path>#<field>`, `secret:<path>` or `platform:<path>`. */
export type SecretReference =
  | { kind: "secret"; path: string; field?: string }
  | { kind: "platform"; path: string; field?: undefined };

export interface GatewayOptions {
  apiKey: string;
  /** null: the answer is never cached. */
  cacheTtlSeconds: number | null;
  metadata: Record<string, unknown>;
}

export interface EgressRule {
  id: string;
  action: "allow" | "deny";
  /** Exact names, `*.example.com` and `*`. */
  hosts?: string[];
  schemes?: string[];
  ports?: number[];
  methods?: string[];
  paths?: string[];
  /** Matches by the references found, never by values. */
  secretPaths?: string[];
}

/** A policy as it is written and stored; the first rule that matches wins. */
export interface EgressPolicyDocument {
  default: "allow" | "deny";
  rules: EgressRule[];
}

export interface EgressRequest extends CoreRequest {
  method: string;
  webSocket: boolean;
  /** What the connection said of itself, where one was intercepted. */
  connection?: { sni?: string | null; address?: string | null };
  gateway?: GatewayOptions | null;
}

export interface EgressDecision {
  kind: "deny" | "forward" | "secret" | "aiGateway";
  /** Id of the rule that decided; null for the default and for what no rule decides. */
  rule: string | null;
  references: SecretReference[];
  dropHeaders: string[];
  /** Of a deny. */
  status?: number;
  code?: string;
  detail?: string;
  /** Of a deny: what the client reads. Of aiGateway: the request's body. */
  body?: string | Uint8Array;
  /** Of aiGateway. */
  endpoint?: string;
  headers?: [name: string, value: string][];
  cacheKeyInput?: string;
}

/** A policy that was compiled once. */
export interface EgressPolicy {
  decide(request: EgressRequest): EgressDecision;
  /** Gives the memory back. The collector does so too, later. */
  free(): void;
  [Symbol.dispose](): void;
}

export type OpenAiRewrite =
  | {
      endpoint: string;
      headers: [name: string, value: string][];
      body: string | Uint8Array;
      cacheKeyInput?: string;
      notRouted?: undefined;
    }
  | { notRouted: string };

/** A response that redirects. */
export interface RedirectResponse {
  status: number;
  headers?: HeaderPairs;
  /** Wins over the header. */
  location?: string;
}

/** Where a redirect leads. */
export interface NextHop {
  method: string;
  url: string;
  headers: [name: string, value: string][];
  /** Whether the request's body goes along. */
  keepsBody: boolean;
  /** The request's own, when it goes along and was given. */
  body?: string | Uint8Array;
}

/** A secret's value: a text, or an object whose fields placeholders name. */
export type Material = string | Record<string, unknown>;

export interface Connection {
  integration: string;
  connection: string;
  secretPath?: string | null;
}

export type EnvLayer = Record<string, string | null>;

export interface SnapshotManifest {
  version: 1 | 2;
  id: string;
  dir: string;
  name?: string;
  /** ms since the epoch */
  createdAt?: number;
  ttlSeconds: number;
  excludes: string[];
  gitignore: boolean;
  transfer: "binding" | "presigned";
  sizeBytes?: number;
  sha256?: string;
}

export interface BackupOptions {
  dir: string;
  name?: string;
  ttl: number;
  gitignore: boolean;
  excludes: string[];
  localBucket?: true;
}

export interface BackupLifecycleRule {
  id: string;
  enabled: boolean;
  conditions: { prefix: string };
  deleteObjectsTransition: { condition: { type: "Age"; maxAge: number } };
  abortMultipartUploadsTransition: { condition: { type: "Age"; maxAge: number } };
}

/** Environment, placeholders, the door, snapshots. */
export interface EgressCore {
  /** Seconds. */
  validateSleepAfter(value: unknown): number;
  validateExec(call: { command: unknown; timeout?: unknown }): void;
  mergeEnv(call: {
    stored: Record<string, string>;
    changes: Record<string, unknown>;
    allowRawSecrets?: boolean;
  }): { stored: Record<string, string>; configured: EnvLayer };
  effectiveEnv(layers: {
    image?: EnvLayer;
    discovered?: EnvLayer;
    stored?: EnvLayer;
    session?: EnvLayer;
    command?: EnvLayer;
  }): Record<string, string>;
  githubTokenEnv(connections: readonly Connection[]): { GH_TOKEN?: string };
  /** One quoted line for `sh`. */
  gitConfigShell(call: { name?: string | null; email?: string | null; placeholder?: string | null }): string;

  scanPlaceholders(request: CoreRequest): { references: SecretReference[] };
  /** `values`: reference key to value. A body comes back as it was given, text or bytes. */
  substitutePlaceholders(
    request: CoreRequest,
    values: Record<string, string>,
  ): { url: string; headers: [name: string, value: string][]; body?: string | Uint8Array };
  selectSecretField(material: Material, field?: string): string;
  checkSecretPin(call: { origins: readonly string[]; url: string }): void;
  checkSecretMaterial(material: unknown): void;
  checkSecretOrigins(origins: unknown): string[];
  scrubPatterns(material: Material): string[];

  compileEgressPolicy(policy: EgressPolicyDocument): EgressPolicy;
  /** @throws SandboxError where the redirect may not, or cannot, be followed */
  nextHop(call: {
    request: CoreRequest & { method: string };
    response: RedirectResponse;
    /** Absent or null for a request that carried no secret. */
    origins?: readonly string[] | null;
  }): NextHop;
  denyResponse(decision: {
    kind?: "deny";
    status?: number;
    code?: string;
    rule?: string | null;
    detail?: string;
  }): { status: number; headers: [name: string, value: string][]; body: string };
  classifyAddress(ip: string): string;
  webSocketResponseHeaders(
    request: { headers: HeaderPairs },
    response: { status: number; headers: HeaderPairs },
  ): [name: string, value: string][];
  rewriteOpenAiRequest(request: CoreRequest & { method: string; gateway: GatewayOptions }): OpenAiRewrite;

  snapshotManifest(call: {
    identity: Identity;
    now: number;
    id: string;
    env: Record<string, string | undefined>;
  }): SnapshotManifest;
  /** The object, or its JSON text. */
  parseSnapshotHandle(handle: unknown): SnapshotManifest;
  backupOptions(manifest: SnapshotManifest): BackupOptions;
  snapshotState(manifest: SnapshotManifest, now: number): "usable" | "expired";
  checkSnapshotOwner(call: { manifest: SnapshotManifest; identity: Identity }): void;
  backupLifecycleRule(): BackupLifecycleRule;
}
