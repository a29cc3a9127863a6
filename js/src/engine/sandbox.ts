/**
 * The stock SDK on the embedded engine: `import { Sandbox } from "iterate-sandboxes/engine"` in place of
 * `@cloudflare/sandbox`, and nothing else changes. On Cloudflare and under wrangler the platform's own containers serve it.
 */
import { Sandbox as StockSandbox } from "@cloudflare/sandbox";
import { carryingArchives, withArchiveBucket } from "./archive-bucket.ts";
import { type EngineEnv, installContainer } from "./container.ts";

export * from "@cloudflare/sandbox";
export { type EngineEnv, installContainer } from "./container.ts";
export { EngineEntrypoint } from "./entrypoint.ts";

interface StockEnv extends EngineEnv {
  /** One of `core.instanceTypes()`; `basic` without it. */
  SANDBOX_INSTANCE_TYPE?: string;
}

/** The name has to stay: the containers library keys its handlers by it. */
export class Sandbox<Env extends StockEnv = StockEnv> extends StockSandbox<Env> {
  constructor(ctx: DurableObjectState<Record<never, never>>, env: Env) {
    installContainer(ctx, env, { className: "Sandbox", instanceType: env.SANDBOX_INSTANCE_TYPE ?? "basic" });
    super(ctx, env.ENGINE === undefined ? env : withArchiveBucket(env, ctx));
  }

  override createBackup(
    ...args: Parameters<StockSandbox<Env>["createBackup"]>
  ): ReturnType<StockSandbox<Env>["createBackup"]> {
    return carryingArchives(this.ctx, () => super.createBackup(...args));
  }

  override restoreBackup(
    ...args: Parameters<StockSandbox<Env>["restoreBackup"]>
  ): ReturnType<StockSandbox<Env>["restoreBackup"]> {
    return carryingArchives(this.ctx, () => super.restoreBackup(...args));
  }

  override mountBucket(...args: Parameters<StockSandbox<Env>["mountBucket"]>): Promise<void> {
    if (this.env.ENGINE === undefined) return super.mountBucket(...args);
    const error = new Error(
      "mount_bucket_unsupported: buckets are not mounted on the embedded engine (it has no FUSE); keep files under /workspace and use createBackup and restoreBackup",
    );
    return Promise.reject(Object.assign(error, { code: "mount_bucket_unsupported" }));
  }
}
