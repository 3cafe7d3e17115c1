import { afterAll, beforeAll, it } from "vitest";
import { checkLaw } from "./law/check-law.js";
import { RealKit } from "./support/real-kit.js";

/*
 * The law: for every sequence of requests, accepted, refused, failing, cancelled or extreme, the live state
 * equals the state after kill -9 and replay, bit for bit, and a request that was answered with an error
 * has changed nothing but what its answer says.
 */

/* A few programs; law.system.test.ts runs more of them. */

let kit: RealKit;
beforeAll(async () => {
  kit = await RealKit.open();
});
afterAll(() => kit.close());

it("holds for the programs that failed once and some others", async () => {
  await checkLaw(kit, { numRuns: 12, seed: 1 });
}, 300_000);
