/** Named moments between two durable steps, where a test may end the object. Without a `FAULTS` binding they do nothing. */

export interface FaultsEnv {
  /** Answers `abort` to the request for a point where the object is to end. Bound by tests only. */
  FAULTS?: Fetcher;
}

export class Checkpoints {
  readonly #ctx: Pick<DurableObjectState, "abort" | "id">;
  readonly #faults: Fetcher | undefined;

  constructor(ctx: Pick<DurableObjectState, "abort" | "id">, env: FaultsEnv) {
    this.#ctx = ctx;
    this.#faults = env.FAULTS;
  }

  /** Placed after every write to storage, and after every await of create, sleep, restore and destroy. */
  async at(point: string): Promise<void> {
    if (this.#faults === undefined) return;
    const answer = await this.#faults.fetch(`http://faults/${encodeURIComponent(point)}`, {
      headers: { "x-object": this.#ctx.id.toString() },
    });
    if ((await answer.text()) === "abort") this.#ctx.abort(`fault injected at ${point}`);
  }
}
