import fc from "fast-check";
import { afterAll, beforeAll, it } from "vitest";
import { knownPrograms, programs } from "./law/programs.js";
import { World } from "./law/world.js";
import { RealKit } from "./support/real-kit.js";

/*
 * The law: for every sequence of requests, accepted, refused, failing, cancelled or extreme, the live state
 * equals the state after kill -9 and replay, bit for bit, and a request that was answered with an error
 * has changed nothing but what its answer says.
 */

const isFull = process.env["TINKER_TS_TEST_FULL"] !== undefined;
const numRuns = isFull ? 2000 : 60;

let kit: RealKit;
beforeAll(async () => {
  kit = await RealKit.open();
});
afterAll(() => kit.close());

it(
  `holds for ${numRuns} programs`,
  async () => {
    await fc.assert(
      fc.asyncProperty(programs, async (program) => {
        const world = await World.open(kit, program);
        try {
          for (const round of program.rounds) await world.run(round);
          await world.finish();
        } finally {
          await world.close();
        }
      }),
      { numRuns, examples: knownPrograms.map((program) => [program]) },
    );
  },
  isFull ? 7_200_000 : 600_000,
);
