import { readFileSync } from "node:fs";
import { expect, it } from "vitest";

const root = new URL("../../", import.meta.url).pathname;
const read = (path: string) => readFileSync(`${root}${path}`, "utf8");
const dependency = (name: string) => {
  const { dependencies } = JSON.parse(read("package.json")) as { dependencies: Record<string, string> };
  return dependencies[name];
};

it.each(["wrangler/Dockerfile", "examples/quick-start/Dockerfile"])(
  "%s is one FROM line in lockstep with the SDK, in package.json and as installed",
  (file) => {
    const image = /^FROM docker\.io\/cloudflare\/sandbox:(\S+)\n$/.exec(read(file));
    const installed = JSON.parse(read("node_modules/@cloudflare/sandbox/package.json")) as {
      version: string;
    };
    expect(image?.[1]).toBe(installed.version);
    expect(dependency("@cloudflare/sandbox")).toBe(installed.version);
  },
);
