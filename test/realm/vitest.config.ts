import { defineConfig } from "vitest/config";

// Started by test/other-realm.test.ts.
export default defineConfig({
  test: { include: ["*.realm.ts"], pool: "vmForks", testTimeout: 60_000 },
});
