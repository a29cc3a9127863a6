/** Runs the repository's deployment scripts and wrangler, with nothing of this machine's account in their environment. */

import { execFile } from "node:child_process";
import { generateConfig } from "../../wrangler/generate-config.ts";
import type { Say } from "../../wrangler/refusal.ts";

export const root = new URL("../../", import.meta.url).pathname;

export interface Finished {
  code: number;
  output: string;
}

function run(file: string, args: string[], env: Record<string, string>): Promise<Finished> {
  return new Promise((resolve) => {
    execFile(file, args, { cwd: root, env: { PATH: process.env.PATH, ...env } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr }),
    );
  });
}

/** Collects what a command of this folder says, and its exit status. */
export async function collect(command: (say: Say) => Promise<number>): Promise<Finished> {
  const lines: string[] = [];
  const add = (line: string) => void lines.push(line);
  const code = await command({ log: add, error: add });
  return { code, output: lines.join("\n") };
}

/** `npm run wrangler:config -- …` */
export const generate = (...args: string[]) => collect((say) => generateConfig(args, say));

/** `wrangler deploy --dry-run` of one configuration: bundles, validates, uploads nothing, asks no account. */
export function dryRun(config: string, home: string): Promise<Finished> {
  const args = [
    "deploy",
    "--dry-run",
    "--containers-rollout=none",
    "--outdir",
    `${home}/bundle`,
    "--config",
    config,
  ];
  return wrangler(args, home);
}

/** `wrangler types` of one configuration, into a file. */
export const types = (config: string, home: string, file: string) =>
  wrangler(["types", file, "--config", config, "--include-runtime=false"], home);

function wrangler(args: string[], home: string): Promise<Finished> {
  return run(process.execPath, [`${root}node_modules/wrangler/bin/wrangler.js`, ...args], {
    HOME: home,
    CI: "1",
    NO_COLOR: "1",
    WRANGLER_SEND_METRICS: "false",
    WRANGLER_HIDE_BANNER: "true",
  });
}
