import { describe, test } from "vitest";
import { FakeService, type ServerDialect } from "./fake-service.js";

/** A test with a service of its own, which fails when a client leaves a timer or a socket behind. */
export const serviceTest = test.extend<{ dialect: ServerDialect; service: FakeService }>({
  dialect: "proto",
  service: async ({ dialect }, use) => {
    const service = await FakeService.start(dialect);
    await use(service);
    await service.close();
  },
});

/** Runs a suite against a server of either dialect. */
export function describeDialects(suite: (dialect: ServerDialect) => void): void {
  describe.each(["proto", "json"] as const)("against a %s server,", (dialect) => {
    serviceTest.override({ dialect });
    suite(dialect);
  });
}

/** One datum that every loss accepts. */
export const datum = {
  modelInput: [1, 2],
  lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] },
};
