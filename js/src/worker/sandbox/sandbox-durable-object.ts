/** One sandbox: the SDK's class behind our guard, its life decided by the core. */
import type { BackupOptions, DirectoryBackup, RestoreBackupResult } from "@cloudflare/sandbox";
import { Sandbox } from "@cloudflare/sandbox";
import { loadCore } from "#core";
import type { Core, ProjectionState } from "../../core/types.ts";
import type { LifecycleRequest, LifecycleState, SandboxIdentity } from "../../core/types-lifecycle.ts";
import { carryingArchives, withArchiveBucket } from "../../engine/archive-bucket.ts";
import { type EngineEnv, installContainer } from "../../engine/container.ts";
import type { WorkerEnv } from "../env.ts";
import { invalidArgument } from "../errors.ts";
import { log } from "../log.ts";
import { projectStub } from "../project/stubs.ts";
import { catalogueStub, streamStub } from "../stream/stub.ts";
import { assertOwnBackup, backupModeOf } from "./backups.ts";
import { checkpoint } from "./checkpoint.ts";
import { ContainerEnd, exitNoticed } from "./container-end.ts";
import { type BackupHandle, Effects, type EffectVariables, type SdkCalls } from "./effects.ts";
import { connectAtOnce } from "./first-connection.ts";
import { check, enter, type Guarded, inside, installGuard, isInside } from "./guard.ts";
import { LifecycleShell } from "./lifecycle-shell.ts";
import type { CreateArguments, InvokeArguments, SandboxDescription, SandboxObject } from "./object.ts";
import { KILLED } from "./object.ts";
import { OwnProjection, type ProjectionWait } from "./own-projection.ts";
import { Publisher } from "./publisher.ts";
import { callMethod, isLeaving, setEnvVarsRequest } from "./requests.ts";
import { checkArguments } from "./sdk-arguments.ts";
import { isCallable, isSessionCallable, sdkMethods } from "./surface.ts";
import { installDeadlines } from "./timed-exec.ts";
import { storedNames } from "./told-names.ts";
import { UnbornStorage } from "./unborn-storage.ts";
import { whenUsed } from "./work.ts";

export type SandboxEnv = WorkerEnv & EngineEnv & EffectVariables;

const STATE_KEY = "lifecycle";
/** Far beyond what an abort takes. */
const ABORT_LIMIT_MS = 5_000;

/** What there is once the state is loaded. */
interface Loaded {
  core: Core;
  shell: LifecycleShell;
  projection: OwnProjection;
  publisher: Publisher;
  effects: Effects;
}

export abstract class SandboxDurableObject extends Sandbox<SandboxEnv> implements SandboxObject, Guarded {
  /** The instance type that the platform gives this class. */
  static readonly instanceType: string = "";

  override interceptHttps = true;
  /** What is not intercepted goes nowhere. */
  override enableInternet = false;
  #loaded: Loaded | null = null;
  readonly #end = new ContainerEnd(this.ctx.id.toString(), this.env.ENGINE !== undefined);
  readonly #unborn = new UnbornStorage(this.ctx);

  constructor(ctx: ConstructorParameters<typeof Sandbox>[0], env: SandboxEnv) {
    installContainer(ctx, env, { className: new.target.name, instanceType: new.target.instanceType });
    super(ctx, withArchiveBucket(env, ctx));
    ctx.blockConcurrencyWhile(() => this.#load());
  }

  // ---- Verbs

  /** Nothing but to have this object: it makes its file while the claim is on its way. */
  async prepare(): Promise<void> {}

  /** Makes this object the sandbox that the claim names, or finishes what an earlier attempt began. */
  async create({ projectId, path, input, claim }: CreateArguments): Promise<void> {
    const { core, shell } = this.#need();
    try {
      if (shell.state.life.kind === "unborn") {
        // A claim with other content than the input belongs to an earlier attempt with that content.
        core.resolveClaim({ path, claim, record: null, inFlight: false, input });
      }
      await shell.ask({ kind: "create", input }, { projectId, path });
    } finally {
      this.#unborn.clear();
    }
  }

  async assertCreated(identity: SandboxIdentity): Promise<void> {
    this[check]("live");
    this.#need().shell.assertCreated(identity);
  }

  override async start(): Promise<void> {
    await this.#ask({ kind: "start" });
  }

  async sleep(): Promise<void> {
    await this.#ask({ kind: "sleep" });
  }

  /** The SDK's stop keeps the instance's slot and loses the workspace; ours sleeps. */
  override async stop(): Promise<void> {
    await this.sleep();
  }

  async restart(): Promise<void> {
    await this.#ask({ kind: "restart" });
  }

  /** Ends this object's memory, not the container. The abort is the answer: whoever calls next meets a new object. */
  async kill(): Promise<void> {
    await this.#ask({ kind: "kill" });
    await new Promise((resolve) => setTimeout(resolve, ABORT_LIMIT_MS));
  }

  override async destroy(): Promise<void> {
    await this.#ask({ kind: "destroy" });
  }

  override async setEnvVars(
    changes: Record<string, string | null | undefined>,
    options: { allowRawSecrets?: boolean } = {},
  ): Promise<void> {
    this[check]("born");
    await this.#ask(setEnvVarsRequest(changes, options));
  }

  override async setSleepAfter(sleepAfter: string | number): Promise<void> {
    if (isInside(this)) return super.setSleepAfter(sleepAfter);
    await this.#ask({ kind: "setSleepAfter", sleepAfter });
  }

  override async setKeepAlive(keepAlive: boolean): Promise<void> {
    if (isInside(this)) return super.setKeepAlive(keepAlive);
    await this.#ask({ kind: "setKeepAlive", keepAlive });
  }

  async #ask(request: LifecycleRequest): Promise<void> {
    // That there is no sandbox is told before anything about the arguments.
    this[check]("born");
    await this.#need().shell.ask(request);
  }

  // ---- What callers ask

  async invoke(request: InvokeArguments): Promise<unknown> {
    this[check]("born");
    const { core, shell } = this.#need();
    const { projectId, path, method, args, sessionId } = request;
    const identity = { projectId, path };
    if (sessionId !== undefined) {
      shell.assertCreated(identity);
      return this.#invokeInSession(sessionId, method, args);
    }
    if (!isCallable(method)) throw invalidArgument("method", method, "a public method of a sandbox");
    if (method === "destroy") return shell.ask({ kind: "destroy" }, identity);
    shell.assertCreated(identity);
    checkArguments(core, method, args);
    return callMethod(this, method, args);
  }

  async #invokeInSession(sessionId: string, method: string, args: unknown[]): Promise<unknown> {
    if (!isSessionCallable(method)) throw invalidArgument("method", method, "a method of a session");
    checkArguments(this.#need().core, method === "setEnvVars" ? "session.setEnvVars" : method, args);
    const session: object = await this.getSession(sessionId);
    return callMethod(session, method, args);
  }

  async projectionSnapshot(): Promise<ProjectionState> {
    this[check]("born");
    return this.#need().projection.state;
  }

  async projectionWaitUntil(wait: ProjectionWait): Promise<ProjectionState> {
    this[check]("born");
    return this.#need().projection.waitUntil(wait);
  }

  /** Whose traffic a container's is. The outbound handler knows no more than the container's object. */
  async egressIdentity(): Promise<SandboxIdentity> {
    this[check]("born");
    return this.#identity();
  }

  async __describe(): Promise<SandboxDescription> {
    this[check]("born");
    const { core, shell } = this.#need();
    const { life, incarnation } = shell.state;
    return {
      ...this.#identity(),
      className: this.constructor.name,
      instanceType: this.#instanceType(),
      life: life.kind,
      container: life.kind === "live" ? life.container.kind : "down",
      incarnation,
      methods: [...sdkMethods],
      fenced: core.fencedMethods(),
    };
  }

  // ---- Backups that a caller takes on purpose; they move no handle

  override async createBackup(options: BackupOptions): Promise<DirectoryBackup> {
    if (isInside(this)) return carryingArchives(this.ctx, () => super.createBackup(options));
    return this[enter]("createBackup", () => {
      const mode = backupModeOf(this.#need().core, this.#identity(), this.env);
      return carryingArchives(this.ctx, () => super.createBackup({ ...options, ...mode }));
    });
  }

  override async restoreBackup(backup: DirectoryBackup): Promise<RestoreBackupResult> {
    if (isInside(this)) return carryingArchives(this.ctx, () => super.restoreBackup(backup));
    return this[enter]("restoreBackup", async () => {
      await assertOwnBackup(this.#need().core, this.#identity(), this.env.BACKUP_BUCKET, backup.id);
      const { localBucket } = backupModeOf(this.#need().core, this.#identity(), this.env);
      const local = localBucket === true && { localBucket };
      return carryingArchives(this.ctx, () => super.restoreBackup({ ...backup, ...local }));
    });
  }

  // ---- The platform's word

  override async fetch(request: Request): Promise<Response> {
    if (isInside(this)) return super.fetch(request);
    return this[enter]("fetch", () => super.fetch(request));
  }

  override async onStart(): Promise<void> {
    this[check]("born");
    this.#end.started();
    connectAtOnce(this, () => this["monitor"]);
    await inside(this, () => super.onStart());
    this.#loaded?.shell.report({ kind: "containerStarted" });
  }

  override async onStop(params: Parameters<Sandbox["onStop"]>[0]): Promise<void> {
    this[check]("born");
    this.#end.stopped(params);
    await inside(this, () => super.onStop(params));
    this.#loaded?.shell.report({ kind: "containerStopped" });
  }

  override onError(error: unknown): void {
    this[check]("born");
    this.#end.failed(error);
    super.onError(error);
    this.#loaded?.shell.report({ kind: "containerStopped" });
  }

  /** The SDK's constructor asks for an alarm; an object that is no sandbox has nothing to wake for. */
  override async scheduleNextAlarm(ms?: number): Promise<void> {
    this[check]("born");
    if (this.ctx.storage.kv.get(STATE_KEY) !== undefined) await super.scheduleNextAlarm(ms);
  }

  override async onActivityExpired(): Promise<void> {
    this[check]("born");
    const { shell } = this.#need();
    shell.report({ kind: "idleExpired" });
    while (isLeaving(shell.state)) await shell.changed();
  }

  // ---- The guard's entrance

  async [enter]<T>(method: string, call: () => Promise<T>): Promise<T> {
    this[check]("born");
    const { shell } = this.#need();
    await shell.ask({ kind: "admit", method });
    const finish = () => shell.report({ kind: "workFinished" });
    let result: T;
    try {
      result = await inside(this, call);
    } catch (error) {
      finish();
      throw error;
    }
    return whenUsed(result, finish, (work) => this.ctx.waitUntil(work));
  }

  [check](level: "born" | "live"): void {
    // The SDK's constructor calls its own methods before there is anything of ours.
    if (!(#loaded in this) || this.#loaded === null) return;
    const { shell } = this.#loaded;
    this.#unborn.clear();
    if (level === "live" || shell.state.life.kind === "unborn") shell.assertCreated();
  }

  // ---- Loading

  async #load(): Promise<void> {
    const core = await loadCore();
    const { storage } = this.ctx;
    const stored = storage.kv.get<LifecycleState>(STATE_KEY);
    if (stored === undefined) this.#unborn.begin();
    const projection = new OwnProjection(storage, core, (options) => this.#stream(core).read(options));
    const pause = (point: string) => checkpoint(this.ctx, point);
    const publisher = new Publisher(
      {
        append: (events) => this.#stream(core).append(events),
        fold: (events) => projection.add(events),
        complete: ({ type, offset }) => {
          const { projectId, path } = this.#identity();
          return catalogueStub(this.env, core, projectId).completion({ path, type, offset });
        },
        checkpoint: pause,
      },
      (signal) => this.#need().shell.report(signal),
    );
    const effects = new Effects({
      core,
      sdk: this.#sdk(),
      variables: this.env,
      identity: () => this.#identity(),
      checkpoint: pause,
      toldNames: storedNames(storage),
      connections: () => projectStub(this.env, core, this.#identity().projectId).listConnections(),
    });
    const shell = new LifecycleShell(
      {
        core,
        checkpoint: pause,
        context: () => ({
          now: Date.now(),
          instanceType: this.#instanceType(),
          ...this.#end.context(this.ctx.container?.running === true),
        }),
        store: (state) => {
          this.#unborn.born();
          storage.kv.put(STATE_KEY, state);
        },
        publish: (events, state) => this.ctx.waitUntil(publisher.publish(events, state)),
        perform: (effect) => inside(this, () => effects.perform(effect)),
        keep: (work) =>
          this.ctx.waitUntil(work.catch((error) => log("error", "lifecycle step failed", { error }))),
      },
      stored,
    );
    this.#loaded = { core, shell, projection, publisher, effects };
    if (stored !== undefined) shell.report({ kind: "objectLoaded" });
  }

  #need(): Loaded {
    if (this.#loaded === null) throw new Error("the sandbox's state is not loaded");
    return this.#loaded;
  }

  #identity(): SandboxIdentity {
    const { life } = this.#need().shell.state;
    if (life.kind === "unborn") throw new Error("a sandbox that was never created has no identity");
    const { projectId, path } = life.record;
    return { projectId, path };
  }

  #instanceType(): string {
    const hosting = this.constructor;
    return "instanceType" in hosting ? String(hosting.instanceType) : "";
  }

  #stream(core: Core) {
    const { projectId, path } = this.#identity();
    return streamStub(this.env, core, projectId, path);
  }

  // ---- The SDK without the guard

  #sdk(): SdkCalls {
    return {
      boot: () => {
        const { projectId, path } = this.#identity();
        this.labels = { project: projectId, sandbox: path };
        const { waitIntervalMS: waitInterval, ...timeouts } = this["containerTimeouts"];
        return this.startAndWaitForPorts({ ports: 3000, cancellationOptions: { ...timeouts, waitInterval } });
      },
      createBackup: (options) => carryingArchives(this.ctx, () => super.createBackup(options)),
      restoreBackup: async (backup: BackupHandle) => {
        await carryingArchives(this.ctx, () => super.restoreBackup(backup));
      },
      setEnvVars: (changes) => super.setEnvVars(changes),
      openSession: async () => {
        await this["ensureDefaultSession"]();
      },
      run: (line) => this["execInternal"](line),
      destroyContainer: () => this.#destroyContainer(),
      setSleepAfter: (sleepAfter) => super.setSleepAfter(sleepAfter),
      setKeepAlive: (keepAlive) => super.setKeepAlive(keepAlive),
      abort: () => {
        // After this turn, in which the kill is noted.
        setTimeout(() => this.ctx.abort(KILLED), 0);
      },
    };
  }

  /** Gone, and heard of: a stop that the SDK learns of later would cut off the next container's connection. */
  async #destroyContainer(): Promise<void> {
    await super.destroy();
    await checkpoint(this.ctx, "ended:container");
    await exitNoticed(() => this["monitoredPromise"] === undefined);
    await this["syncPendingStoppedEvents"]();
    await checkpoint(this.ctx, "heard:stop");
  }
}

installDeadlines(SandboxDurableObject.prototype, Sandbox.prototype);
installGuard(SandboxDurableObject.prototype, [Sandbox.prototype, Object.getPrototypeOf(Sandbox.prototype)]);
