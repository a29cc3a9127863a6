/** SANDBOX_ENGINE=docker: the Worker and its containers are handed to `wrangler dev`, which runs containers in Docker. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { SandboxError } from "../core/error.ts";

export interface DockerOptions {
  /** What `npm run wrangler:config -- --env dev` wrote. */
  config: string;
  stateDir: string;
  host: string;
  port: number;
}

/** What wrangler is started with, exactly. */
export interface DockerHandover {
  args: string[];
  env: { MINIFLARE_CONTAINER_EGRESS_IMAGE: string; MINIFLARE_CONTAINER_EGRESS_IMAGE_PLATFORM: string };
}

/**
 * The sidecar that carries a container's egress, as wrangler's default names it but without the digest: the digest is of the
 * amd64 image alone, and under emulation the sidecar's transparent proxy does not start.
 */
const egressImage = "cloudflare/proxy-everything:3cb1195";
const platforms: Readonly<Record<string, string>> = { x64: "linux/amd64", arm64: "linux/arm64" };
/** The first start pulls an image of half a gigabyte. */
const startMs = 15 * 60_000;

export function dockerHandover(
  options: DockerOptions,
  env: Readonly<Record<string, string | undefined>>,
  arch: string = process.arch,
): DockerHandover {
  const { config, host, port, stateDir } = options;
  return {
    args: [
      "dev",
      ...["--config", config],
      ...["--ip", host, "--port", String(port)],
      ...["--persist-to", join(stateDir, "wrangler")],
      // Keys go by a file: arguments can be read by every user of the machine.
      ...["--env-file", varsFile(stateDir)],
    ],
    env: {
      MINIFLARE_CONTAINER_EGRESS_IMAGE: env.MINIFLARE_CONTAINER_EGRESS_IMAGE || egressImage,
      MINIFLARE_CONTAINER_EGRESS_IMAGE_PLATFORM:
        env.MINIFLARE_CONTAINER_EGRESS_IMAGE_PLATFORM || (platforms[arch] ?? `linux/${arch}`),
    },
  };
}

/** Docker's engine: its version, or why there is none and what to do. */
export async function dockerEngine(): Promise<{ version: string } | { absence: string; advice: string }> {
  try {
    const { stdout } = await promisify(execFile)("docker", ["info", "--format", "{{.ServerVersion}}"]);
    return { version: stdout.trim() };
  } catch (error) {
    const { code, stderr } = Object(error);
    if (code === "ENOENT") {
      return {
        absence: "Docker is not installed: there is no `docker` on the PATH",
        advice: "install Docker",
      };
    }
    const said = String(stderr ?? "")
      .trim()
      .split("\n")
      .at(-1);
    return {
      absence: `Docker is installed, but its engine does not answer${said ? ` (${said})` : ""}`,
      advice: "start Docker, or let this user reach it",
    };
  }
}

export interface DockerWorker {
  url: URL;
  close(): Promise<void>;
}

/** Starts wrangler and returns when it serves. @throws SandboxError `docker_mode_failed` with wrangler's last words */
export async function startDocker(
  options: DockerOptions,
  vars: Record<string, string>,
  log: (line: string) => void,
): Promise<DockerWorker> {
  const config = resolve(options.config);
  const missing = existsSync(config)
    ? null
    : `${config} is missing; write it with \`npm run wrangler:config -- --env dev\``;
  const docker = await dockerEngine();
  // Without Docker nothing else matters; what else is missing is told with it, so that nobody mends one thing after the other.
  if ("absence" in docker) {
    const instead =
      process.platform === "linux"
        ? "SANDBOX_ENGINE=embedded needs none"
        : "SANDBOX_ENGINE=none runs without containers";
    throw failed(
      `${docker.absence}; ${docker.advice}, or: ${instead}${missing === null ? "" : `. Also, ${missing}`}`,
    );
  }
  if (missing !== null) throw failed(missing);
  const port = options.port === 0 ? await freePort(options.host) : options.port;
  await writeFile(varsFile(options.stateDir), varsText(vars), { mode: 0o600 });
  const handover = dockerHandover({ ...options, config, port }, process.env);
  const manifest = createRequire(import.meta.url).resolve("wrangler/package.json");
  const child = spawn(process.execPath, [join(dirname(manifest), "bin/wrangler.js"), ...handover.args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...handover.env },
  });
  const last: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      log(line);
      last.push(line);
      if (last.length > 20) last.shift();
    });
  }
  const url = new URL(`http://${options.host}:${port}`);
  await serves(url, child, last);
  return { url, close: () => ended(child) };
}

function varsFile(stateDir: string): string {
  return join(stateDir, "docker.env");
}

/** dotenv's quoting: in single quotes everything but a single quote stands for itself. */
function varsText(vars: Record<string, string>): string {
  return Object.entries(vars)
    .map(([name, value]) => {
      if (value.includes("'") || value.includes("\n")) {
        throw failed(
          `the variable ${name} holds a single quote or a line break, which wrangler's file cannot carry`,
        );
      }
      return `${name}='${value}'\n`;
    })
    .join("");
}

async function serves(url: URL, child: ChildProcess, last: readonly string[]): Promise<void> {
  const deadline = Date.now() + startMs;
  while (Date.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) {
      throw failed(`wrangler ended: ${last.join(" | ")}`);
    }
    const answers = await fetch(url).then(
      (response) => response.body?.cancel().then(() => true) ?? true,
      () => false,
    );
    if (answers) return;
    await new Promise((wake) => setTimeout(wake, 200));
  }
  await ended(child);
  throw failed(`wrangler did not serve within ${startMs / 60_000} minutes: ${last.join(" | ")}`);
}

function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((done) => {
    child.once("exit", () => done());
    child.kill("SIGTERM");
  });
}

function freePort(host: string): Promise<number> {
  const server = createServer();
  return new Promise((found, reject) => {
    server.once("error", reject);
    server.listen(0, host, () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === "object") found(address.port);
        else reject(new Error("there is no free port"));
      });
    });
  });
}

function failed(message: string): SandboxError {
  return new SandboxError({
    code: "docker_mode_failed",
    message: `SANDBOX_ENGINE=docker: ${message}`,
    details: {},
    status: 500,
    retryable: false,
  });
}
