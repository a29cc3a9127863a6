import { defineConfig } from "vitest/config";

// Real workerd and real sandboxes share two cores in CI: one file at a time, and limits that only a hang can reach.
export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 180_000,
    teardownTimeout: 30_000,
  },
});
