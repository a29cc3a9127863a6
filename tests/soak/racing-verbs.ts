/**
 * Many clients do random verbs on a few names at once. Each notes what it was told and where the stream stood around the call; at the
 * end the streams must tell the same story: for every acknowledgement there is a moment between the call and its answer when it was so.
 */
import { loadCore } from "../../js/src/core/index.ts";
import type { ProjectionState } from "../../js/src/core/types.ts";
import { connect, type ItxConnection } from "../../js/src/node/client.ts";
import type { Itx, SandboxEvent } from "../../js/src/node/itx.ts";
import { seededRandom } from "../support/random.ts";
import type { TestServer } from "../support/server.ts";

export interface RaceSize {
  clients: number;
  names: number;
  seconds: number;
  seed: number;
}

export interface RaceOutcome {
  calls: number;
  acknowledged: number;
  paths: number;
  events: number;
  /** Refusals by code. */
  refusals: Record<string, number>;
  /** What the streams do not bear out; empty when all is well. */
  faults: string[];
}

/** What was acknowledged: between the two heads of the stream there was a state for which this holds. */
interface Acknowledged {
  path: string;
  verb: string;
  from: number;
  to: number;
  holds: (state: ProjectionState) => boolean;
}

/** A variable of one client on one path: the value that was acknowledged last, and those that may have replaced it. */
interface Written {
  acknowledged: string | null;
  possible: Set<string>;
}

/** Refusals that a race may end in; every other one is a fault. */
const fair: ReadonlySet<string> = new Set([
  "sandbox_exists",
  "sandbox_not_found",
  "sandbox_destroyed",
  "creation_in_progress",
  "creation_unfinished",
  "OPERATION_INTERRUPTED",
  "CONTAINER_UNAVAILABLE",
]);

const weights = {
  exec: 40,
  setEnvVars: 26,
  sleep: 6,
  start: 8,
  restart: 3,
  create: 6,
  list: 4,
  snapshot: 6,
  destroy: 1,
} as const;
type Verb = keyof typeof weights;
const lots = (Object.entries(weights) as [Verb, number][]).flatMap(([verb, weight]) =>
  Array<Verb>(weight).fill(verb),
);

class Race {
  readonly #random: () => number;
  readonly #size: RaceSize;
  readonly #generations: number[];
  readonly #acknowledged: Acknowledged[] = [];
  readonly #created = new Map<string, number>();
  readonly #destroyed = new Set<string>();
  readonly #written = new Map<string, Map<string, Written>>();
  readonly #refusals: Record<string, number> = {};
  readonly #faults: string[] = [];
  #calls = 0;

  constructor(size: RaceSize) {
    this.#size = size;
    this.#random = seededRandom(size.seed);
    this.#generations = Array.from({ length: size.names }, () => 0);
  }

  async run(server: TestServer): Promise<RaceOutcome> {
    const connections = await Promise.all(
      Array.from({ length: this.#size.clients }, async () => {
        const token = await server.server.mintToken("prj_verbs");
        return connect({ url: server.url, token });
      }),
    );
    const until = Date.now() + this.#size.seconds * 1000;
    await Promise.all(connections.map((connection, client) => this.#client(connection, client, until)));
    const [judge] = connections;
    if (judge === undefined) throw new RangeError("a race needs clients");
    const events = await this.#judge(judge.itx);
    await Promise.all(connections.map((connection) => connection.close()));
    return {
      calls: this.#calls,
      acknowledged: this.#acknowledged.length,
      paths: this.#paths().length,
      events,
      refusals: this.#refusals,
      faults: this.#faults,
    };
  }

  #paths(): string[] {
    return this.#generations.flatMap((last, slot) =>
      Array.from({ length: last + 1 }, (_, generation) => `/sandboxes/n${slot}-${generation}`),
    );
  }

  async #client({ itx }: ItxConnection, client: number, until: number): Promise<void> {
    while (Date.now() < until) {
      const slot = Math.floor(this.#random() * this.#size.names);
      const generation = this.#generations[slot] ?? 0;
      const path = `/sandboxes/n${slot}-${generation}`;
      const retired = this.#destroyed.has(path);
      this.#calls += 1;
      try {
        await this.#call(itx, client, path, this.#verb());
        if (retired) this.#faults.push(`${path} answered after its destruction was acknowledged`);
      } catch (error) {
        this.#refused(path, retired, error);
        if (codeOf(error) === "sandbox_destroyed" && this.#generations[slot] === generation) {
          this.#generations[slot] = generation + 1;
        }
      }
    }
  }

  #verb(): Verb {
    return lots[Math.floor(this.#random() * lots.length)] ?? "exec";
  }

  #refused(path: string, retired: boolean, error: unknown): void {
    const code = codeOf(error);
    this.#refusals[code] = (this.#refusals[code] ?? 0) + 1;
    if (!fair.has(code)) this.#faults.push(`${path}: ${code}: ${String(error).slice(0, 300)}`);
    if (retired && code !== "sandbox_destroyed") this.#faults.push(`${path} is destroyed, and said ${code}`);
  }

  async #call(itx: Itx, client: number, path: string, verb: Verb): Promise<void> {
    const sandbox = itx.sandboxes.get(path);
    const acknowledge = async (call: () => Promise<unknown>, holds: Acknowledged["holds"]) => {
      const from = await headOf(itx, path);
      await call();
      const to = await headOf(itx, path);
      this.#acknowledged.push({ path, verb, from, to, holds });
    };
    switch (verb) {
      case "create":
        await acknowledge(
          () => sandbox.create({ instanceType: "lite" }),
          ({ status }) => status === "created",
        );
        this.#created.set(path, (this.#created.get(path) ?? 0) + 1);
        return;
      case "exec":
        return await this.#exec(itx, path, `${client}-${this.#calls}`);
      case "setEnvVars":
        return await this.#setVariable(client, path, (key, value) =>
          acknowledge(
            () => sandbox.setEnvVars({ [key]: value }),
            ({ env }) => env[key] === value,
          ),
        );
      case "sleep":
        return await acknowledge(
          () => sandbox.sleep(),
          ({ running }) => !running,
        );
      case "start":
      case "restart":
        return await acknowledge(
          () => sandbox[verb](),
          ({ running }) => running,
        );
      case "destroy":
        await acknowledge(
          () => sandbox.destroy(),
          ({ status }) => status === "destroyed",
        );
        this.#destroyed.add(path);
        return;
      case "list":
        await itx.sandboxes.list({ limit: 1000 });
        return;
      case "snapshot":
        await sandbox.processor.snapshot();
        return;
    }
  }

  async #exec(itx: Itx, path: string, word: string): Promise<void> {
    const { stdout, exitCode } = await itx.sandboxes.get(path).exec(`echo ${word}`);
    if (exitCode !== 0 || stdout !== `${word}\n`) {
      this.#faults.push(`${path}: echo ${word} ended with ${exitCode} and ${JSON.stringify(stdout)}`);
    }
  }

  async #setVariable(
    client: number,
    path: string,
    set: (key: string, value: string) => Promise<void>,
  ): Promise<void> {
    const key = `C${client}`;
    const value = String(this.#calls);
    const ofPath = this.#written.get(path) ?? new Map<string, Written>();
    this.#written.set(path, ofPath);
    const written = ofPath.get(key) ?? { acknowledged: null, possible: new Set<string>() };
    ofPath.set(key, written);
    written.possible.add(value);
    await set(key, value);
    written.acknowledged = value;
    written.possible.clear();
  }

  async #judge(itx: Itx): Promise<number> {
    const core = await loadCore();
    const { sandboxes } = await itx.sandboxes.list({ limit: 1000 });
    const listed = new Map(sandboxes.map(({ path, status }) => [path, status]));
    let count = 0;
    for (const path of this.#paths()) {
      const events = await eventsOf(itx, path);
      count += events.length;
      if (events.length === 0) continue;
      const states = [core.foldProjection([])];
      for (const event of events) states.push(core.foldProjection([event], states.at(-1)));
      this.#judgePath(path, events, states);
      const last = states.at(-1);
      if (listed.get(path) !== last?.status) {
        this.#faults.push(`${path} is ${listed.get(path)} in the list and ${last?.status} on its stream`);
      }
      const own = await itx.sandboxes
        .get(path)
        .processor.snapshot()
        .catch(() => null);
      if (own !== null && JSON.stringify(own) !== JSON.stringify(last)) {
        this.#faults.push(`${path} thinks ${JSON.stringify(own)}, its stream says ${JSON.stringify(last)}`);
      }
    }
    return count;
  }

  #judgePath(path: string, events: readonly SandboxEvent[], states: readonly ProjectionState[]): void {
    const births = events.filter(({ type }) => type.endsWith("/sandbox/created")).length;
    const told = this.#created.get(path) ?? 0;
    if (births !== 1 || told > 1) this.#faults.push(`${path}: ${births} births, ${told} acknowledged`);
    if (events.some(({ offset }, index) => offset !== index + 1)) this.#faults.push(`${path} has a hole`);
    for (const { path: of, verb, from, to, holds } of this.#acknowledged) {
      if (of !== path || states.slice(from, to + 1).some(holds)) continue;
      this.#faults.push(`${path}: ${verb} was acknowledged between ${from} and ${to}, and never was so`);
    }
    const env = states.at(-1)?.env ?? {};
    for (const [key, { acknowledged, possible }] of this.#written.get(path) ?? []) {
      const value = env[key];
      if (acknowledged === null || value === acknowledged || (value !== undefined && possible.has(value)))
        continue;
      this.#faults.push(`${path}: ${key} is ${value}, but ${acknowledged} was acknowledged`);
    }
  }
}

async function headOf(itx: Itx, path: string): Promise<number> {
  return (await itx.streams.get(path).read({ limit: 1 })).head;
}

async function eventsOf(itx: Itx, path: string): Promise<SandboxEvent[]> {
  const events: SandboxEvent[] = [];
  for (;;) {
    const page = await itx.streams.get(path).read({ after: events.length, limit: 1000 });
    events.push(...page.events);
    if (page.events.length === 0 || events.length >= page.head) return events;
  }
}

function codeOf(error: unknown): string {
  const code: unknown = Object(error).code;
  return typeof code === "string" ? code : String(error);
}

export function raceVerbs(server: TestServer, size: RaceSize): Promise<RaceOutcome> {
  return new Race(size).run(server);
}
