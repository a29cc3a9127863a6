/**
 * What the Worker remembers of its containers. It has to outlive the Durable Objects: an object that was aborted or evicted
 * finds its live container again by reading this in its constructor, synchronously. All objects of a Worker share one isolate
 * here, and the host ends every container when that isolate's process ends, so this memory is exactly as old as the containers.
 */
import { endReason, type Intercept, interceptKey, type Outcome } from "./protocol.ts";

/** One incarnation of a container. */
export interface Life {
  readonly incarnation: string;
  /** Null while it runs. */
  outcome: Outcome | null;
  /** What `destroy(reason)` was given; `monitor` rejects with it. */
  destroyReason: { value: unknown } | null;
}

/** Where an intercepted request goes: an entrypoint of this Worker, called with these props. */
export interface InterceptTarget {
  entrypoint: string;
  props: Record<string, unknown> | undefined;
}

const lives = new Map<string, Life>();
const intercepts = new Map<string, Map<string, Intercept & InterceptTarget>>();

export function currentLife(container: string): Life | null {
  return lives.get(container) ?? null;
}

export function beginLife(container: string, incarnation: string): Life {
  const life: Life = { incarnation, outcome: null, destroyReason: null };
  lives.set(container, life);
  return life;
}

/** Notes the end of an incarnation; the end of an older one changes nothing. */
export function endLife(container: string, incarnation: string, outcome: Outcome): void {
  const life = lives.get(container);
  if (life?.incarnation === incarnation) life.outcome ??= outcome;
}

/** Why the newest incarnation ended; undefined while it runs. One that nobody remembers went with the process that did. */
export function reasonOfEnd(container: string): string | undefined {
  const life = lives.get(container);
  if (life === undefined) return "the local runtime that held it ended";
  return life.outcome === null ? undefined : endReason(life.outcome);
}

/** The same kind and address replaces the target and keeps its place in the order. */
export function recordIntercept(container: string, intercept: Intercept, target: InterceptTarget): void {
  const known = intercepts.get(container) ?? new Map<string, Intercept & InterceptTarget>();
  known.set(interceptKey(intercept), { ...intercept, ...target });
  intercepts.set(container, known);
}

export function registeredIntercepts(container: string): Intercept[] {
  return [...(intercepts.get(container)?.values() ?? [])].map(({ kind, address }) => ({ kind, address }));
}

export function interceptTarget(container: string, key: string): InterceptTarget | null {
  return intercepts.get(container)?.get(key) ?? null;
}
