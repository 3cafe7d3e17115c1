import { test } from "vitest";
import { FakeService } from "./fake-service.js";

/** A test with a service of its own, which fails when a client leaves a timer or a socket behind. */
export const serviceTest = test.extend<{ service: FakeService }>({
  service: async ({ task: _ }, use) => {
    const service = await FakeService.start();
    await use(service);
    await service.close();
  },
});

/** One datum that every loss accepts. */
export const datum = {
  modelInput: [1, 2],
  lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] },
};
