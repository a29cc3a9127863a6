import { expect, it } from "vitest";
import { loadCore } from "../../js/src/core/index.ts";
import type {
  BirthRecord,
  Claim,
  ClaimInput,
  FoldableEvent,
  Identity,
  Migration,
} from "../../js/src/core/types.ts";
import { attempt, passes, readCases } from "./case.ts";

const core = await loadCore();
/** Each adapter states the input of its cases, which come from JSON. */
type Adapter = (input: never) => object;

const claimEvent = (path: string, create: ClaimInput) =>
  attempt(() => {
    const resolution = core.resolveClaim({ path, claim: null, record: null, inFlight: false, input: create });
    return resolution.outcome === "claim" ? resolution.event : {};
  });

const resolve = (
  claim: Claim | null,
  record: BirthRecord | null,
  inFlight: boolean,
  input: ClaimInput | null,
  path: string,
) =>
  attempt(() => {
    const { outcome, ...rest } = core.resolveClaim({ path, claim, record, inFlight, input });
    return { action: outcome, ...rest };
  });

interface WranglerMigration {
  tag: string;
  new_sqlite_classes?: string[];
  deleted_classes?: string[];
}

const migrate = (applied: WranglerMigration[], instanceTypes: string[]) => {
  const classes = core
    .instanceTypes()
    .filter(({ name }) => instanceTypes.includes(name))
    .map(({ className }) => className);
  const steps: Migration[] = applied.map((step) => ({
    tag: step.tag,
    newSqliteClasses: step.new_sqlite_classes ?? [],
    deletedClasses: step.deleted_classes ?? [],
  }));
  const deletable = core.instanceTypes().map(({ className }) => className);
  const { migrations } = core.planMigrations({ applied: steps, classes, deletable });
  return {
    migrations: migrations.map(({ tag, newSqliteClasses, deletedClasses }) => ({
      tag,
      ...(newSqliteClasses.length > 0 ? { new_sqlite_classes: newSqliteClasses } : {}),
      ...(deletedClasses.length > 0 ? { deleted_classes: deletedClasses } : {}),
    })),
  };
};

const adapters: Record<string, Adapter> = {
  "identity.pathForName": ({ name }: { name: string }) =>
    attempt(() => ({ path: core.assertSandboxPath(`/sandboxes/${name}`) })),
  "identity.validatePath": ({ paths }: { paths: string[] }) => ({
    results: paths.map((path) => attempt(() => ({ path: core.assertSandboxPath(path) }))),
  }),
  "identity.doName": ({ items }: { items: Identity[] }) => ({
    results: items.map((item) => attempt(() => ({ name: core.durableObjectName(item) }))),
  }),
  "identity.ensure": ({ stored, given }: { stored: Identity | null; given: Identity }) => ({
    ...attempt(() => ({ identity: core.ensureIdentity({ stored, given }) })),
    stored,
  }),
  "catalogue.claimEvent": (input: {
    path: string;
    create: ClaimInput;
    items?: { path: string; create: ClaimInput }[];
  }) =>
    input.items === undefined
      ? claimEvent(input.path, input.create)
      : { results: input.items.map(({ path, create }) => claimEvent(path, create)) },
  "catalogue.create": ({
    claim,
    record,
    inFlight,
    request,
  }: {
    claim: Claim | null;
    record: BirthRecord | null;
    inFlight: boolean;
    request: ClaimInput & { path: string };
  }) => resolve(claim, record, inFlight, request, request.path),
  // The core has no way to write.
  "catalogue.get": ({
    claim,
    record,
    path,
  }: {
    claim: Claim | null;
    record: BirthRecord | null;
    path: string;
  }) => ({
    ...resolve(claim, record, false, null, path),
    writes: [],
  }),
  "lifecycle.fold": ({ events }: { events: FoldableEvent[] }) =>
    attempt(() => ({ state: core.foldProjection(events) })),
  "lifecycle.foldRaw": ({ raw }: { raw: string }) =>
    attempt(() => ({ state: core.foldProjection(new TextEncoder().encode(raw)) })),
  "config.sleepAfter": ({ values }: { values: unknown[] }) => ({
    results: values.map((value) => attempt(() => ({ seconds: core.validateSleepAfter(value) }))),
  }),
  "config.migrate": ({ applied, instanceTypes }: { applied: WranglerMigration[]; instanceTypes: string[] }) =>
    attempt(() => migrate(applied, instanceTypes)),
};

it.each(readCases(new Set(Object.keys(adapters))))("$id: $why", (one) => {
  const answer = adapters[one.call]?.(one.input as never);
  expect(passes(one, answer), `${JSON.stringify(answer)} is not ${JSON.stringify(one.expect)}`).toBe(true);
});
