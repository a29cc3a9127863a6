import type { Boundary } from "./boundary.ts";
import { CoreEgressPolicy, CoreProjection } from "./handles.ts";
import { asciiHost, asciiLocation, asciiPolicy } from "./hosts.ts";
import type {
  Claim,
  ClaimRequest,
  Connection,
  Core,
  CoreRequest,
  EgressPolicy,
  EgressPolicyDocument,
  EventInput,
  FoldableEvent,
  GatewayOptions,
  HeaderPairs,
  Identity,
  Material,
  NextHop,
  OpenAiRewrite,
  Projection,
  ProjectionState,
  SnapshotManifest,
} from "./types.ts";
import { bodyLike, referencesOf, stateOf, withNulls, withPairs } from "./values.ts";

/** Names the arguments of each function and hands them on; nothing is decided here. */
export function makeCore(boundary: Boundary): Core {
  // The core's answers have the shapes of types.ts: the test vectors hold both sides to them.
  const ask = <T>(name: string, input: object, body?: string | Uint8Array): T =>
    boundary.call(name, input, body).value as T;
  return {
    call: (name, input, body) =>
      typeof input === "string" ? boundary.callText(name, input, body) : boundary.call(name, input, body),
    ...identityFunctions(ask),
    ...tableFunctions(ask),
    ...projectionFunctions(ask, boundary),
    ...lifecycleFunctions(ask),
    ...environmentFunctions(ask),
    ...placeholderFunctions(ask, boundary),
    ...egressFunctions(ask, boundary),
    ...snapshotFunctions(ask),
  };
}

type Ask = <T>(name: string, input: object, body?: string | Uint8Array) => T;
type Part<K extends keyof Core> = Pick<Core, K>;

function identityFunctions(
  ask: Ask,
): Part<
  | "durableObjectName"
  | "parseDurableObjectName"
  | "assertProjectId"
  | "assertSandboxPath"
  | "assertSecretPath"
  | "assertStreamPath"
  | "streamAncestors"
  | "ensureIdentity"
> {
  return {
    durableObjectName: ({ projectId, path }: Identity) => ask("durableObjectName", { projectId, path }),
    parseDurableObjectName: (name: string) => ask("parseDurableObjectName", { name }),
    assertProjectId: (value: string) => ask("assertProjectId", { value }),
    assertSandboxPath: (value: string) => ask("assertSandboxPath", { value }),
    assertSecretPath: (value: string) => ask("assertSecretPath", { value }),
    assertStreamPath: (value: string) => ask("assertStreamPath", { value }),
    streamAncestors: (path: string) => ask("streamAncestors", { path }),
    ensureIdentity: (call) => ask("ensureIdentity", call),
  };
}

function tableFunctions(
  ask: Ask,
): Part<
  | "instanceTypes"
  | "limits"
  | "errorCatalogue"
  | "eventCatalogue"
  | "validateEvent"
  | "resolveClaim"
  | "routeClaim"
  | "assertContainers"
  | "checkQuota"
  | "planMigrations"
> {
  return {
    instanceTypes: () => ask("instanceTypes", {}),
    limits: () => ask("limits", {}),
    errorCatalogue: () => ask("errorCatalogue", {}),
    eventCatalogue: () => ask("eventCatalogue", {}),
    validateEvent: ({ type, payload }: EventInput) => ask("validateEvent", { type, payload }),
    resolveClaim: (request: ClaimRequest) => ask("resolveClaim", request),
    assertContainers: (engineMode: string) => ask("assertContainers", { engineMode }),
    routeClaim: (claim: Claim | null, path?: string) => ask("routeClaim", { claim, path }),
    checkQuota: (request) => ask("checkQuota", request),
    planMigrations: (request) => ask("planMigrations", request),
  };
}

function projectionFunctions(ask: Ask, boundary: Boundary): Part<"foldProjection" | "createProjection"> {
  return {
    foldProjection: (events: readonly FoldableEvent[] | Uint8Array, state?: ProjectionState) =>
      events instanceof Uint8Array
        ? foldBytes(ask, boundary, events, state)
        : ask("foldProjection", { events, state }),
    createProjection: (state?: ProjectionState): Projection =>
      new CoreProjection(boundary, ask("createProjection", { state })),
  };
}

function foldBytes(
  ask: Ask,
  boundary: Boundary,
  events: Uint8Array,
  state: ProjectionState | undefined,
): ProjectionState {
  const quick = state === undefined ? boundary.callFields("foldProjection", [], { body: events }) : undefined;
  if (quick === undefined) return ask("foldProjection", { state }, events);
  return quick.fields === undefined ? (quick.value as ProjectionState) : stateOf(quick.fields);
}

function lifecycleFunctions(
  ask: Ask,
): Part<"initialState" | "decide" | "react" | "evolve" | "fencedMethods"> {
  return {
    initialState: () => ask("initialState", {}),
    decide: (call) => ask("decide", call),
    react: (call) => ask("react", call),
    evolve: (call) => ask("evolve", call),
    fencedMethods: () => ask("fencedMethods", {}),
  };
}

function environmentFunctions(
  ask: Ask,
): Part<
  "validateSleepAfter" | "validateExec" | "mergeEnv" | "effectiveEnv" | "githubTokenEnv" | "gitConfigShell"
> {
  return {
    validateSleepAfter: (value: unknown) => ask("validateSleepAfter", { value }),
    validateExec: (call) => {
      ask("validateExec", call);
    },
    // JSON has no undefined, and an unset that is lost would never reach the history.
    mergeEnv: (call) => ask("mergeEnv", { ...call, changes: withNulls(call.changes) }),
    effectiveEnv: (layers) => ask("effectiveEnv", layers),
    githubTokenEnv: (connections: readonly Connection[]) => ask("githubTokenEnv", { connections }),
    gitConfigShell: (call) => ask("gitConfigShell", call),
  };
}

function placeholderFunctions(
  ask: Ask,
  boundary: Boundary,
): Part<
  | "scanPlaceholders"
  | "substitutePlaceholders"
  | "selectSecretField"
  | "checkSecretPin"
  | "checkSecretMaterial"
  | "checkSecretOrigins"
  | "scrubPatterns"
> {
  return {
    scanPlaceholders: ({ body, ...request }: CoreRequest) => {
      const fields = withPairs([request.url], request.headers);
      const quick = fields && boundary.callFields("scanPlaceholders", fields, { body });
      if (quick?.fields !== undefined) return { references: referencesOf(quick.fields) };
      return ask("scanPlaceholders", { ...request, url: asciiHost(request.url) }, body);
    },
    substitutePlaceholders: ({ body, ...request }: CoreRequest, values: Record<string, string>) => {
      const input = { ...request, url: asciiHost(request.url), values };
      const answer = boundary.call("substitutePlaceholders", input, body);
      const changed = answer.value as { url: string; headers: [string, string][] };
      return answer.body === undefined ? changed : { ...changed, body: bodyLike(body, answer.body) };
    },
    selectSecretField: (material: Material, field?: string) => ask("selectSecretField", { material, field }),
    checkSecretPin: ({ origins, url }) => {
      ask("checkSecretPin", { origins: origins.map(asciiHost), url: asciiHost(url) });
    },
    checkSecretMaterial: (material: unknown) => {
      ask("checkSecretMaterial", { material });
    },
    checkSecretOrigins: (origins: unknown) => ask("checkSecretOrigins", { origins }),
    scrubPatterns: (material: Material) => ask("scrubPatterns", { material }),
  };
}

function egressFunctions(
  ask: Ask,
  boundary: Boundary,
): Part<
  | "compileEgressPolicy"
  | "nextHop"
  | "denyResponse"
  | "classifyAddress"
  | "webSocketResponseHeaders"
  | "rewriteOpenAiRequest"
> {
  return {
    compileEgressPolicy: (policy: EgressPolicyDocument): EgressPolicy =>
      new CoreEgressPolicy(boundary, ask("compileEgressPolicy", { policy: asciiPolicy(policy) })),
    nextHop: ({ request: { body, ...request }, response, origins }) => {
      const hop: NextHop = ask("nextHop", {
        request: { ...request, url: asciiHost(request.url) },
        response: asciiLocation(response, request.url),
        origins: origins?.map(asciiHost),
      });
      return hop.keepsBody && body !== undefined ? { ...hop, body } : hop;
    },
    denyResponse: (decision) => ask("denyResponse", { decision }),
    classifyAddress: (ip: string) => ask("classifyAddress", { ip }),
    webSocketResponseHeaders: (request: { headers: HeaderPairs }, response: { headers: HeaderPairs }) =>
      ask("webSocketResponseHeaders", { request, response }),
    rewriteOpenAiRequest: ({
      body,
      ...request
    }: CoreRequest & { method: string; gateway: GatewayOptions }) => {
      const answer = boundary.call("rewriteOpenAiRequest", { ...request, url: asciiHost(request.url) }, body);
      const rewritten = answer.value as OpenAiRewrite;
      if (rewritten.notRouted !== undefined) return rewritten;
      // Without bytes the body stays as it came.
      return { ...rewritten, body: answer.body === undefined ? (body ?? "") : bodyLike(body, answer.body) };
    },
  };
}

function snapshotFunctions(
  ask: Ask,
): Part<
  | "snapshotManifest"
  | "parseSnapshotHandle"
  | "backupOptions"
  | "snapshotState"
  | "checkSnapshotOwner"
  | "backupLifecycleRule"
> {
  return {
    snapshotManifest: (call) => ask("snapshotManifest", call),
    parseSnapshotHandle: (handle: unknown) => ask("parseSnapshotHandle", { handle }),
    backupOptions: (manifest: SnapshotManifest) => ask("backupOptions", { manifest }),
    snapshotState: (manifest: SnapshotManifest, now: number) => ask("snapshotState", { manifest, now }),
    checkSnapshotOwner: (call) => {
      ask("checkSnapshotOwner", call);
    },
    backupLifecycleRule: () => ask("backupLifecycleRule", {}),
  };
}
