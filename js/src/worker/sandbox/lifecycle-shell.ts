/**
 * Carries out what the core decides about one sandbox. It holds the state, asks, stores, appends, performs and reports back; every
 * rule is the core's. A command that has to wait is asked again after each change, so that nothing depends on who woke whom.
 */
import type {
  LifecycleContext,
  LifecycleCore,
  LifecycleDecision,
  LifecycleEffect,
  LifecycleEvent,
  LifecycleRequest,
  LifecycleSignal,
  LifecycleState,
  SandboxIdentity,
} from "../../core/types-lifecycle.ts";

/** What the shell needs of the world around it. */
export interface LifecycleWorld {
  readonly core: LifecycleCore;
  context(): LifecycleContext;
  /** Durable before anything that follows from it leaves the object. */
  store(state: LifecycleState): void;
  /** Starts appending; outcomes come back as signals. */
  publish(events: readonly LifecycleEvent[], state: () => LifecycleState): void;
  /** Does one thing and says how it went; null where there is nothing to say. */
  perform(effect: LifecycleEffect): Promise<LifecycleSignal | null>;
  /** A moment between two durable steps. */
  checkpoint(point: string): Promise<void>;
  /** Keeps the object until the work is done. */
  keep(work: Promise<unknown>): void;
}

export class LifecycleShell {
  readonly #world: LifecycleWorld;
  #state: LifecycleState;
  #waiting: (() => void)[] = [];

  constructor(world: LifecycleWorld, stored: LifecycleState | undefined) {
    this.#world = world;
    this.#state = stored ?? world.core.initialState();
  }

  get state(): LifecycleState {
    return this.#state;
  }

  /**
   * Resolves when the command is done, or may run.
   * @throws SandboxError where the core refuses it, at once or after a wait
   */
  async ask(request: LifecycleRequest, identity?: SandboxIdentity): Promise<void> {
    let since: number | undefined;
    for (;;) {
      const command = { ...request, ...(identity && { identity }), ...(since !== undefined && { since }) };
      const context = this.#world.context();
      const decision = this.#world.core.decide({ state: this.#state, command, context });
      this.#commit(decision, request.kind);
      if (decision.reply.kind === "proceed") return;
      since = decision.reply.since;
      // Nothing reports before this turn ends, so no change can be missed between the commit and here.
      await this.#nextChange();
    }
  }

  /** Whether a command would be refused right now, without asking for anything. */
  assertCreated(identity?: SandboxIdentity): void {
    const command = { kind: "assertCreated" as const, ...(identity && { identity }) };
    this.#world.core.decide({ state: this.#state, command, context: this.#world.context() });
  }

  report(signal: LifecycleSignal): void {
    const context = this.#world.context();
    this.#commit(this.#world.core.react({ state: this.#state, signal, context }), signal.kind);
  }

  /** Resolves after the next change of the state. */
  changed(): Promise<void> {
    return this.#nextChange();
  }

  #nextChange(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #commit(decision: LifecycleDecision, cause: string): void {
    this.#state = decision.state;
    if (decision.persist) this.#world.store(decision.state);
    if (decision.events.length > 0 || decision.effects.length > 0) {
      this.#world.keep(this.#follow(decision, cause));
    }
    if (!decision.changed) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }

  async #follow(decision: LifecycleDecision, cause: string): Promise<void> {
    if (decision.persist) await this.#world.checkpoint(`stored:${cause}`);
    if (decision.events.length > 0) this.#world.publish(decision.events, () => this.#state);
    await Promise.all(decision.effects.map((effect) => this.#perform(effect)));
  }

  async #perform(effect: LifecycleEffect): Promise<void> {
    await this.#world.checkpoint(`before:${effect.kind}`);
    const signal = await this.#world.perform(effect);
    await this.#world.checkpoint(`after:${effect.kind}`);
    if (signal !== null) this.report(signal);
  }
}
