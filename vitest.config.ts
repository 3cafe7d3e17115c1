import { existsSync, readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";

const packages = readdirSync("packages").filter((name) =>
  existsSync(`packages/${name}/package.json`),
);

export default defineConfig({
  test: {
    testTimeout: 20_000,
    // As long as everything else that is waited for; the second it would be is no time on a busy machine.
    expect: { poll: { timeout: 15_000 } },
    // Much of the time is waiting for processes and disks, so two files run at once even on two cores.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "workspace", include: ["test/**/*.test.ts"] } },
      ...packages.map((name) => ({
        extends: true as const,
        root: `packages/${name}`,
        test: {
          name,
          include: ["src/**/*.test.ts", "test/**/*.test.ts"],
          ...(existsSync(`packages/${name}/test/global-setup.ts`)
            ? { globalSetup: "test/global-setup.ts" }
            : {}),
        },
      })),
    ],
  },
});
