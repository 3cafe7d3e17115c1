import { afterAll, beforeAll, it } from "vitest";
import { checkLaw } from "./law/check-law.js";
import { RealKit } from "./support/real-kit.js";

/*
 * The law of law.test.ts in bulk. TINKER_TS_TEST_SEED draws other programs; TINKER_TS_TEST_PATH runs the one that a
 * failure has named.
 */

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const numRuns = isFull ? 2000 : 60;
const seed = Number(process.env["TINKER_TS_TEST_SEED"] ?? 2);
const path = process.env["TINKER_TS_TEST_PATH"];

let kit: RealKit;
beforeAll(async () => {
  kit = await RealKit.open();
});
afterAll(() => kit.close());

it(
  `holds for ${numRuns} programs`,
  async () => {
    const onProgram = (done: number): void => {
      if (!isFull || done % 100 !== 0) return;
      process.stderr.write(`law: ${done} of ${numRuns} programs, seed ${seed}\n`);
    };
    await checkLaw(kit, { numRuns, seed, path, onProgram });
  },
  isFull ? 7_200_000 : 600_000,
);
