import type { Answer, Boundary } from "./boundary.ts";
import { asciiHost } from "./hosts.ts";
import type {
  EgressDecision,
  EgressPolicy,
  EgressRequest,
  FoldableEvent,
  Projection,
  ProjectionState,
} from "./types.ts";
import { bodyLike, withPairs } from "./values.ts";

interface Slot {
  boundary: Boundary;
  handle: number;
  free: string;
}

const release = (slot: Slot): void => {
  slot.boundary.call(slot.free, { handle: slot.handle });
};

/** Frees what nobody freed, once the collector finds it. */
const registry = new FinalizationRegistry<Slot>(release);

/** A value that lives in the core, named by a number. */
abstract class Handle {
  protected readonly boundary: Boundary;
  protected readonly handle: number;
  readonly #slot: Slot;

  constructor(boundary: Boundary, handle: number, free: string) {
    this.boundary = boundary;
    this.handle = handle;
    this.#slot = { boundary, handle, free };
    registry.register(this, this.#slot, this);
  }

  free(): void {
    registry.unregister(this);
    release(this.#slot);
  }

  [Symbol.dispose](): void {
    this.free();
  }
}

export class CoreProjection extends Handle implements Projection {
  constructor(boundary: Boundary, handle: number) {
    super(boundary, handle, "projectionFree");
  }

  apply(events: readonly FoldableEvent[] | Uint8Array): number {
    const { handle } = this;
    const answer =
      events instanceof Uint8Array
        ? (this.boundary.callFields("projectionApply", [], { handle, body: events }) ??
          this.boundary.call("projectionApply", { handle }, events))
        : this.boundary.call("projectionApply", { handle, events });
    return answer.value as number;
  }

  state(): ProjectionState {
    return this.boundary.call("projectionState", { handle: this.handle }).value as ProjectionState;
  }
}

export class CoreEgressPolicy extends Handle implements EgressPolicy {
  constructor(boundary: Boundary, handle: number) {
    super(boundary, handle, "freeEgressPolicy");
  }

  decide({ body, ...request }: EgressRequest): EgressDecision {
    const answer =
      this.#decideFields(request, body) ??
      this.boundary.call(
        "decideEgress",
        { handle: this.handle, request: { ...request, url: asciiHost(request.url) } },
        body,
      );
    const decision = answer.value as EgressDecision;
    if (answer.body !== undefined) decision.body = bodyLike(body, answer.body);
    // Without bytes the body stays as it came.
    else if (decision.kind === "aiGateway") decision.body = body ?? "";
    return decision;
  }

  #decideFields(request: Omit<EgressRequest, "body">, body: EgressRequest["body"]): Answer | undefined {
    const { method, url, webSocket, gateway, connection } = request;
    if (typeof webSocket !== "boolean") return undefined;
    const bare = (gateway ?? connection ?? null) === null;
    const surroundings = bare ? "" : JSON.stringify({ gateway, connection });
    const fields = withPairs([method, url, webSocket ? "1" : "0", surroundings], request.headers);
    return fields && this.boundary.callFields("decideEgress", fields, { handle: this.handle, body });
  }
}
