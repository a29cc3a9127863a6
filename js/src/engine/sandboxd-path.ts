/** Where `sandboxd` is: built in this tree, in the package of this platform, or built from the sources that the package carries. */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { SandboxError } from "../core/error.ts";

/** The same from the sources and from dist/js. */
const packageRoot = join(import.meta.dirname, "../../..");
const run = promisify(execFile);

/**
 * The path of the binary. `SANDBOXD` in the environment wins; the first call on a platform without a package of its own builds
 * it once into the user's cache.
 * @throws SandboxError `sandboxd_missing`
 */
export async function sandboxdPath(
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<string> {
  const named = env.SANDBOXD;
  if (named !== undefined && named !== "") {
    if (existsSync(named)) return named;
    throw missing(`SANDBOXD names ${named}, which is not there`);
  }
  const built = join(packageRoot, "dist/engine/sandboxd");
  if (existsSync(built)) return built;
  return fromPlatformPackage() ?? (await fromSources(env));
}

const platformPackage = () => `iterate-sandboxes-${process.platform}-${process.arch}`;

function fromPlatformPackage(): string | null {
  try {
    const path = createRequire(import.meta.url).resolve(`${platformPackage()}/sandboxd`);
    return existsSync(path) ? path : null;
  } catch {
    return null;
  }
}

async function fromSources(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const manifest: unknown = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"));
  const version = isVersioned(manifest) ? manifest.version : "0";
  const cache = join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "iterate-sandboxes", version);
  const cached = join(cache, `sandboxd-${process.arch}`);
  if (existsSync(cached)) return cached;
  const name = platformPackage();
  process.stderr.write(
    `building sandboxd from its sources, once, which takes minutes; the package ${name} spares it where it exists\n`,
  );
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "build-"));
  try {
    const options = ["-DCMAKE_BUILD_TYPE=Release", "-DSANDBOXES_CORE=OFF", "-DSANDBOXES_ENGINE=ON"];
    await run("cmake", ["-S", packageRoot, "-B", folder, ...options], { maxBuffer: 64 << 20 });
    await run("cmake", ["--build", folder, "--target", "sandboxd", "--parallel"], { maxBuffer: 64 << 20 });
    // Containers run it as somebody else.
    await chmod(join(folder, "engine/sandboxd"), 0o755);
    // Whole or not at all, also when two processes build at once.
    await rename(join(folder, "engine/sandboxd"), cached);
    return cached;
  } catch (error) {
    throw missing(reasonOf(error));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const isVersioned = (value: unknown): value is { version: string } =>
  typeof value === "object" && value !== null && "version" in value && typeof value.version === "string";

/** The last line of what a failed command said. */
function reasonOf(error: unknown): string {
  const stderr = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
  const line = stderr.split("\n").at(-1);
  if (line !== undefined && line !== "") return line;
  return error instanceof Error ? error.message : String(error);
}

function missing(reason: string): SandboxError {
  const name = platformPackage();
  return new SandboxError({
    code: "sandboxd_missing",
    message:
      `there is no sandboxd for the embedded engine: ${reason}. In a clone, run \`npm run setup\`. Elsewhere install the package ${name} ` +
      "where it exists, or what building it needs: cmake, g++, libboost1.81-dev, libseccomp-dev, liblz4-dev, nlohmann-json3-dev (Debian's names)",
    details: { platform: process.platform, arch: process.arch },
    status: 500,
    retryable: false,
  });
}
