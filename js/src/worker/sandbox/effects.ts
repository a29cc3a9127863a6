/** Each effect of the core's decisions, done with the SDK. What happened is told; what follows from it is not decided here. */
import type { BackupOptions, Core } from "../../core/types.ts";
import type { LifecycleEffect, LifecycleSignal, SandboxIdentity } from "../../core/types-lifecycle.ts";
import type { Connection } from "../project/connections.ts";
import { type TransferVariables, transferVariables } from "./backups.ts";
import type { ToldNames } from "./told-names.ts";

/** The handle that the SDK gives for a backup and takes to restore one. */
export interface BackupHandle {
  id: string;
  dir: string;
  localBucket?: boolean;
}

/** The SDK's own methods, without the guard. */
export interface SdkCalls {
  boot(): Promise<void>;
  createBackup(options: BackupOptions): Promise<BackupHandle>;
  restoreBackup(backup: BackupHandle): Promise<void>;
  setEnvVars(changes: Record<string, string | undefined>): Promise<void>;
  openSession(): Promise<void>;
  /** Runs a line in the default session; its exit code and what it wrote to stderr. */
  run(line: string): Promise<{ exitCode: number; stderr: string }>;
  destroyContainer(): Promise<void>;
  setSleepAfter(sleepAfter: string | number): Promise<void>;
  setKeepAlive(keepAlive: boolean): Promise<void>;
  abort(): void;
}

/** The variables that decide how snapshots travel and who commits. */
export interface EffectVariables extends TransferVariables {
  GIT_USER_NAME?: string;
  GIT_USER_EMAIL?: string;
}

export interface EffectWorld {
  readonly core: Core;
  readonly sdk: SdkCalls;
  readonly variables: EffectVariables;
  identity(): SandboxIdentity;
  connections(): Promise<Connection[]>;
  /** The names of variables that the running container may hold; kept where an end of this object does not lose them. */
  readonly toldNames: ToldNames;
  /** A moment between two steps of one effect. */
  checkpoint(point: string): Promise<void>;
}

/** Codes of the SDK that say: the container went away before anything ran. */
const INTERRUPTED: readonly string[] = [
  "OPERATION_INTERRUPTED",
  "CONTAINER_UNAVAILABLE",
  "RPC_TRANSPORT_ERROR",
  "SESSION_DESTROYED",
];

export class Effects {
  readonly #world: EffectWorld;
  /** What this object has told the SDK, whose memory it shares. */
  #env: Record<string, string> = {};

  constructor(world: EffectWorld) {
    this.#world = world;
  }

  /** Never rejects: a failure is a signal too. */
  async perform(effect: LifecycleEffect): Promise<LifecycleSignal | null> {
    switch (effect.kind) {
      case "boot":
        return this.#attempt(effect, "bootDone", () => this.#boot());
      case "restore":
        return this.#restore(effect);
      case "applyEnv":
        return this.#attempt(effect, "envApplied", () => this.#applyEnv(effect.env));
      case "openSession":
        return this.#attempt(effect, "sessionOpened", () => this.#openSession(effect.delayMs));
      case "configureGit":
        return this.#attempt(effect, "gitConfigured", () => this.#configureGit());
      case "takeSnapshot":
        return this.#snapshot(effect);
      case "tearDown":
        return this.#attempt(effect, "tornDown", () => this.#world.sdk.destroyContainer());
      case "applySettings":
        return this.#applySettings(effect);
      case "abortObject":
        this.#world.sdk.abort();
        return null;
    }
  }

  async #attempt(
    effect: {
      kind: "boot" | "applyEnv" | "openSession" | "configureGit" | "tearDown";
      incarnation: number;
    },
    done: "bootDone" | "envApplied" | "sessionOpened" | "gitConfigured" | "tornDown",
    work: () => Promise<void>,
  ): Promise<LifecycleSignal> {
    const { incarnation } = effect;
    try {
      await work();
      return { kind: done, incarnation };
    } catch (error) {
      const interrupted = INTERRUPTED.includes(codeOf(error));
      return { kind: "effectFailed", incarnation, effect: effect.kind, error: messageOf(error), interrupted };
    }
  }

  async #restore(effect: LifecycleEffect & { kind: "restore" }): Promise<LifecycleSignal> {
    const { incarnation } = effect;
    let presigned = false;
    try {
      const { id, dir, transfer } = this.#world.core.parseSnapshotHandle(effect.handle.manifest);
      presigned = transfer === "presigned" && !effect.bindingOnly;
      await this.#world.sdk.restoreBackup({ id, dir, ...(presigned ? {} : { localBucket: true }) });
      await this.#world.checkpoint("restored:backup");
      return { kind: "restoreDone", incarnation };
    } catch (error) {
      const expired = codeOf(error) === "BACKUP_EXPIRED";
      return { kind: "restoreFailed", incarnation, error: messageOf(error), expired, presigned };
    }
  }

  async #snapshot(effect: LifecycleEffect & { kind: "takeSnapshot" }): Promise<LifecycleSignal> {
    const { core, sdk } = this.#world;
    const { incarnation } = effect;
    let presigned = false;
    try {
      const now = Date.now();
      // The SDK gives a backup its id, so the manifest that asks for one has another until then.
      const draft = core.snapshotManifest({
        identity: this.#world.identity(),
        now,
        id: crypto.randomUUID(),
        env: effect.bindingOnly ? {} : transferVariables(this.#world.variables),
      });
      presigned = draft.transfer === "presigned";
      const { id } = await sdk.createBackup(core.backupOptions(draft));
      await this.#world.checkpoint("stored:backup");
      const { ttlSeconds } = draft;
      const manifest = JSON.stringify({ ...draft, id });
      return { kind: "snapshotDone", incarnation, id, createdAt: now, ttlSeconds, manifest };
    } catch (error) {
      return { kind: "snapshotFailed", incarnation, error: messageOf(error), presigned };
    }
  }

  async #boot(): Promise<void> {
    // A new container holds no variable.
    this.#world.toldNames.set([]);
    try {
      await this.#world.sdk.boot();
    } catch (error) {
      // The SDK destroys what did not start, and then fails with the reason it gave for that, which is none.
      throw error ?? new Error("it ended while it was being started");
    }
  }

  async #applyEnv(stored: Record<string, string>): Promise<void> {
    const { core, sdk, toldNames } = this.#world;
    const connections = (await this.#world.connections()).map(({ kind, name, secretPath }) => ({
      integration: kind,
      connection: name,
      secretPath,
    }));
    const discovered = core.githubTokenEnv(connections);
    const env = core.effectiveEnv({ image: {}, discovered, stored, session: {}, command: {} });
    const changes: Record<string, string | undefined> = {};
    const held = new Set([...toldNames.get(), ...Object.keys(this.#env)]);
    for (const key of held) if (!Object.hasOwn(env, key)) changes[key] = undefined;
    for (const [key, value] of Object.entries(env)) if (this.#env[key] !== value) changes[key] = value;
    // Noted before they are told: after an end between the two a name too many is unset, and none is forgotten.
    toldNames.set([...new Set([...held, ...Object.keys(env)])]);
    await this.#world.checkpoint("discovered:connections");
    if (Object.keys(changes).length > 0) await sdk.setEnvVars(changes);
    await this.#world.checkpoint("told:env");
    this.#env = env;
    toldNames.set(Object.keys(env));
  }

  async #openSession(delayMs: number): Promise<void> {
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    await this.#world.sdk.openSession();
  }

  async #configureGit(): Promise<void> {
    const { core, sdk, variables } = this.#world;
    const line = core.gitConfigShell({
      name: variables.GIT_USER_NAME ?? null,
      email: variables.GIT_USER_EMAIL ?? null,
      placeholder: this.#env.GH_TOKEN ?? null,
    });
    const { exitCode, stderr } = await sdk.run(line);
    if (exitCode !== 0) throw new Error(`git could not be configured (status ${exitCode}): ${stderr}`);
  }

  async #applySettings(effect: LifecycleEffect & { kind: "applySettings" }): Promise<null> {
    if (effect.sleepAfter !== undefined) await this.#world.sdk.setSleepAfter(effect.sleepAfter);
    await this.#world.checkpoint("told:sleepAfter");
    await this.#world.sdk.setKeepAlive(effect.keepAlive);
    return null;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
