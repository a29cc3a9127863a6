import { configDefaults, defineConfig } from "vitest/config";

/** Minutes each: `npm run test:long` runs these. */
const long = [
  "tests/worker/fault-injection.test.ts",
  "tests/soak/kill-nine.test.ts",
];

/** One of them, short, so that the command itself is run in CI: see tests/docs/commands.test.ts. */
const chosen = process.env.SIZE === "smoke" ? ["tests/soak/kill-nine.test.ts"] : long;

// Real workerd and real sandboxes share two cores in CI: one file at a time, and limits that only a hang can reach.
export default defineConfig({
  test: {
    include: process.env.LONG === "1" ? chosen : ["tests/**/*.test.ts"],
    exclude: process.env.LONG === "1" ? configDefaults.exclude : [...configDefaults.exclude, ...long],
    fileParallelism: false,
    maxConcurrency: 2,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
  },
});
