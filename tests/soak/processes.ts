/** The processes of one server, found in /proc by their parents, and what they leave behind. */
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessInfo {
  pid: number;
  parent: number;
  name: string;
}

function list(): ProcessInfo[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8");
        const close = stat.lastIndexOf(")");
        const [state, parent] = stat.slice(close + 2).split(" ");
        // A zombie holds nothing; whoever adopted it will reap it.
        if (state === "Z") return [];
        return [
          { pid: Number(name), parent: Number(parent), name: stat.slice(stat.indexOf("(") + 1, close) },
        ];
      } catch {
        return []; // it ended while we looked
      }
    });
}

/** Every descendant of a process, children before grandchildren. */
export function descendants(root: number): ProcessInfo[] {
  const all = list();
  const found: ProcessInfo[] = [];
  for (let parents = [root]; parents.length > 0; ) {
    const children = all.filter(({ parent }) => parents.includes(parent));
    found.push(...children);
    parents = children.map(({ pid }) => pid);
  }
  return found;
}

export const alive = (pids: readonly number[]): number[] => {
  const now = new Set(list().map(({ pid }) => pid));
  return pids.filter((pid) => now.has(pid));
};

/** Mounts that this process's own namespace shows under a folder: none may outlive a sandbox. */
export const mountsUnder = (folder: string): string[] =>
  readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => line.includes(folder));

/** Loop devices over files in a folder. One that is freed while it is looked at stands on nothing. */
export const loopsOver = (folder: string): string[] =>
  readdirSync("/sys/block").filter((name) => {
    try {
      return readFileSync(`/sys/block/${name}/loop/backing_file`, "utf8").includes(folder);
    } catch {
      return false;
    }
  });
