/** The engine's host on one state folder, with the limits that the core's instance table gives each container. */
import { join } from "node:path";
import type { Core } from "../core/types.ts";
import { EngineHost } from "../engine/host.ts";
import type { ContainerLimits } from "../engine/launchers.ts";
import { sandboxdPath } from "../engine/sandboxd-path.ts";
import type { StateDir } from "./state-dir.ts";

export interface EngineHostOptions {
  state: StateDir;
  core: Core;
  /** Shared with the Worker; a new one for each boot. */
  secret: string;
  /** `name` or `name:port` to `address:port`: public names that are served locally. */
  upstreams?: Record<string, string>;
  /** PEM certificates that are trusted on connections to upstreams. */
  upstreamCa?: string;
  log: (line: string) => void;
}

/** @throws SandboxError `sandboxd_missing` */
export async function startHost(options: EngineHostOptions): Promise<EngineHost> {
  const { state, core, secret, log } = options;
  return EngineHost.start({
    sandboxd: await sandboxdPath(),
    runtimeDir: state.runtimeDir,
    scratchDir: join(state.path, "containers"),
    secret,
    limits: (instanceType) => limitsOf(core, instanceType),
    outbound: {
      upstreams: options.upstreams ?? {},
      ...(options.upstreamCa === undefined ? {} : { upstreamCa: options.upstreamCa }),
    },
    log,
  });
}

/** A weight of 100 is one whole CPU, and no type gets less than the smallest share the scheduler knows. */
function limitsOf(core: Core, instanceType: string): ContainerLimits {
  const row = core.instanceTypes().find(({ name }) => name === instanceType);
  if (row === undefined) throw new Error(`there is no instance type ${JSON.stringify(instanceType)}`);
  return {
    memoryBytes: row.memoryMib * 1024 * 1024,
    cpuWeight: Math.max(1, Math.round(100 * row.vcpu)),
    cpuQuota: row.vcpu,
    // Four processes or threads for each MiB is far above what fits; a floor keeps small types usable.
    pids: Math.min(8192, 512 + row.memoryMib),
    diskBytes: row.diskMb * 1_000_000,
  };
}
