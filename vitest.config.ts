import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { configDefaults, defineConfig } from "vitest/config";

const workspaces = ["packages", "tools"]
  .flatMap((parent) => readdirSync(parent).map((name) => ({ name, root: `${parent}/${name}` })))
  .filter(({ root }) => existsSync(`${root}/package.json`));

/**
 * Tests of whole systems (packages as they are published, other runtimes, GPUs, long lives of a server) have a
 * command of their own: `npm run test:system`. `npm run test:full` runs everything.
 */
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const isSystem = process.env["TINKER_TS_TEST_SYSTEM"] === "1";
const kind = isSystem && !isFull ? "*.system.test.ts" : "*.test.ts";
const exclude = [...configDefaults.exclude, ...(isFull || isSystem ? [] : ["**/*.system.test.ts"])];

export default defineConfig({
  resolve: { alias: { "fast-check": path.resolve("test/support/seeded-fast-check.ts") } },
  test: {
    testTimeout: 20_000,
    // Tests have engines of their own; those about the shared local server unset it.
    env: { TINKER_TS_IN_PROCESS: "1" },
    // As long as everything else that is waited for; the second it would be is no time on a busy machine.
    expect: { poll: { timeout: 15_000 } },
    // Much of the time is waiting for processes and disks, so two files run at once even on two cores.
    maxWorkers: 2,
    projects: [
      { extends: true, test: { name: "workspace", include: [`test/**/${kind}`], exclude } },
      ...workspaces.map(({ name, root }) => ({
        extends: true as const,
        root,
        test: {
          name,
          include: [`src/**/${kind}`, `test/**/${kind}`],
          exclude,
          ...(existsSync(`${root}/test/global-setup.ts`)
            ? { globalSetup: "test/global-setup.ts" }
            : {}),
        },
      })),
    ],
  },
});
