/** One secret in its object's storage: sealed material, origins, versions. A secret that was never set leaves nothing there. */
import { shellError } from "../errors.ts";
import { loadSealingKeys, type SecretKeySource } from "./keys.ts";
import { type Sealed, seal, unseal } from "./seal.ts";
import type { SecretDescription, SecretMaterial } from "./types.ts";

interface Row {
  version: number;
  origins: string[];
  createdAt: string;
  updatedAt: string;
  /** Null after a deletion: the version goes on counting from here. */
  sealed: Sealed | null;
}

export interface OpenSecret {
  material: SecretMaterial;
  origins: string[];
  version: number;
}

const ROW = "secret";

export class Vault {
  readonly #storage: DurableObjectStorage;
  readonly #keys: SecretKeySource;
  readonly #identity: { projectId: string; path: string };
  #open: OpenSecret | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    storage: DurableObjectStorage,
    keys: SecretKeySource,
    identity: { projectId: string; path: string },
  ) {
    this.#storage = storage;
    this.#keys = keys;
    this.#identity = identity;
  }

  async describe(): Promise<SecretDescription | null> {
    const row = await this.#storage.get<Row>(ROW);
    if (row === undefined || row.sealed === null) return null;
    const { version, origins, createdAt, updatedAt } = row;
    return { path: this.#identity.path, version, origins, createdAt, updatedAt };
  }

  /** The next version. Without origins it keeps those it has. */
  async store(material: SecretMaterial, origins: string[] | null, now: string): Promise<SecretDescription> {
    const [key] = await loadSealingKeys(this.#keys);
    return this.#alone(async () => {
      const row = await this.#storage.get<Row>(ROW);
      const live = row !== undefined && row.sealed !== null;
      if (origins === null && !live) throw this.notFound();
      const version = (row?.version ?? 0) + 1;
      const sealed = await seal(key, { ...this.#identity, version }, JSON.stringify(material));
      const next: Row = {
        version,
        origins: origins ?? row?.origins ?? [],
        createdAt: live ? row.createdAt : now,
        updatedAt: now,
        sealed,
      };
      await this.#storage.put(ROW, next);
      this.#open = null;
      return {
        path: this.#identity.path,
        version,
        origins: next.origins,
        createdAt: next.createdAt,
        updatedAt: now,
      };
    });
  }

  /** False when there was nothing to delete. */
  delete(now: string): Promise<boolean> {
    return this.#alone(async () => {
      this.#open = null;
      const row = await this.#storage.get<Row>(ROW);
      if (row === undefined || row.sealed === null) return false;
      await this.#storage.put<Row>(ROW, { ...row, sealed: null, origins: [], updatedAt: now });
      return true;
    });
  }

  /**
   * The material, for use inside this object. A row that was sealed under an older key is sealed anew on the way.
   * @throws SandboxError `secret_not_found` or `secret_key_unknown`
   */
  open(): Promise<OpenSecret> {
    return this.#alone(async () => {
      if (this.#open !== null) return this.#open;
      const row = await this.#storage.get<Row>(ROW);
      if (row === undefined || row.sealed === null) throw this.notFound();
      const keys = await loadSealingKeys(this.#keys);
      const context = { ...this.#identity, version: row.version };
      const plaintext = await unseal(keys, context, row.sealed);
      if (row.sealed.keyId !== keys[0].id) {
        await this.#storage.put<Row>(ROW, { ...row, sealed: await seal(keys[0], context, plaintext) });
      }
      this.#open = { material: JSON.parse(plaintext), origins: row.origins, version: row.version };
      return this.#open;
    });
  }

  notFound() {
    const { path } = this.#identity;
    return shellError("secret_not_found", `there is no secret at ${path}; set it first`, { path });
  }

  /** One after the other: sealing takes time, and no other call may come between reading a version and writing the next. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
