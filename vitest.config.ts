import { existsSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

const packages = readdirSync("packages").filter((name) =>
  existsSync(`packages/${name}/package.json`),
);

// Projects do not inherit it.
const testTimeout = 20_000;

export default defineConfig({
  test: {
    projects: [
      { test: { name: "workspace", include: ["test/**/*.test.ts"], testTimeout } },
      ...packages.map((name) => ({
        root: `packages/${name}`,
        test: { name, include: ["src/**/*.test.ts", "test/**/*.test.ts"], testTimeout },
      })),
    ],
  },
});
