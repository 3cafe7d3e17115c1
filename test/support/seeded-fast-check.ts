import { createRequire } from "node:module";

/*
 * Takes the place of fast-check in the tests (vitest.config.ts): one seed for all of them, so that a red run is red
 * again. TINKER_TS_TEST_SEED draws others, and `npm run test:full` draws new ones every time.
 */
const fc = createRequire(import.meta.url)("fast-check") as typeof import("fast-check");

const given = process.env["TINKER_TS_TEST_SEED"];
const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
if (given !== undefined || !isFull) fc.configureGlobal({ seed: Number(given ?? 2) });

export default fc;
