import { readdirSync, readFileSync } from "node:fs";
import type { Vector } from "./vectors.ts";

const folder = new URL("../vectors/", import.meta.url).pathname;

export const vectorFiles: string[] = readdirSync(folder).filter((name) => name.endsWith(".json"));

export function readVectors(name: string): Vector[] {
  return JSON.parse(readFileSync(`${folder}${name}`, "utf8"));
}
