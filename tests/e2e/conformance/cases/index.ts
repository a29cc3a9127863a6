import type { Cases } from "../case.ts";
import { backups } from "./backups.ts";
import { code } from "./code.ts";
import { commands } from "./commands.ts";
import { files } from "./files.ts";
import { lives } from "./lives.ts";
import { ports } from "./ports.ts";
import { processes } from "./processes.ts";
import { sessions } from "./sessions.ts";
import { settings } from "./settings.ts";

/** Every case; the cases of one method are in one place. */
export const cases: Cases = joined([
  commands,
  processes,
  files,
  sessions,
  code,
  backups,
  ports,
  settings,
  lives,
]);

function joined(areas: Cases[]): Cases {
  const all: Cases = {};
  for (const area of areas) {
    for (const [method, its] of Object.entries(area)) {
      if (method in all) throw new Error(`${method} has cases in two places`);
      all[method] = its;
    }
  }
  return all;
}
