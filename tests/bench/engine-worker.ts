/** What `engine.ts` times: calls of the unmodified SDK in its object, on the engine's agent or on a bare server in the same sandbox. */
import { type DirectoryBackup, FileClient } from "@cloudflare/sandbox";
import { engineEntry } from "../../js/src/engine/entry.ts";
import { type EngineEnv, Sandbox as EngineSandbox } from "../../js/src/engine/sandbox.ts";

export { ContainerProxy } from "@cloudflare/sandbox";

interface BenchEnv extends EngineEnv {
  BACKUP_BUCKET: R2Bucket;
  Sandbox: DurableObjectNamespace<Sandbox>;
}

type Query = Record<string, string>;

export class Sandbox extends EngineSandbox<BenchEnv> {
  #backup: DirectoryBackup | null = null;
  #archive: ArrayBuffer | null = null;

  async bench({ op = "", port = "3000", path = "", mb = "1", command = "" }: Query): Promise<unknown> {
    switch (op) {
      case "exec":
        return await this.exec(command);
      case "start": {
        const process = await this.startProcess(command);
        return await process.waitForLog("up", 20_000);
      }
      case "read": {
        const { content } = await this.#files(port).readFile(path, "bench");
        return { size: content.length };
      }
      case "write":
        return await this.#files(port).writeFile(path, "0123456789abcdef".repeat(Number(mb) << 16), "bench");
      case "backup":
        this.#backup = await this.createBackup({ dir: path, localBucket: true });
        return this.#backup;
      case "put": {
        // From memory: no more than the bucket's own work.
        const { BACKUP_BUCKET: bucket } = this.env;
        const kept = () => bucket.get(`backups/${this.#backup?.id}/data.sqsh`);
        this.#archive ??= (await (await kept())?.arrayBuffer()) ?? null;
        return (await bucket.put("bench", this.#archive))?.size;
      }
      case "end":
        return await this.destroy();
      case "restore":
        if (this.#backup === null) throw new Error("there is no backup yet");
        return await this.restoreBackup(this.#backup);
      default:
        throw new RangeError(`there is no ${op} here`);
    }
  }

  /** The SDK's own client of a server on the port. */
  #files(port: string): FileClient {
    return new FileClient({ stub: this, port: Number(port) });
  }
}

export default {
  async fetch(request, env, ctx) {
    const engine = engineEntry(request, env, ctx);
    if (engine !== null) return engine;
    const query = Object.fromEntries(new URL(request.url).searchParams);
    return Response.json((await env.Sandbox.getByName(query.name ?? "bench").bench(query)) ?? null);
  },
} satisfies ExportedHandler<BenchEnv>;
