// `npm test [-- <vitest arguments>]`, `npm run test:system` and `npm run test:full`.
import { testOnOtherNodes } from "./other-nodes.mjs";
import { binary, ensureReady, run } from "./ready.mjs";

const kinds = { "--full": "TINKER_TS_TEST_FULL", "--system": "TINKER_TS_TEST_SYSTEM" };
const args = process.argv.slice(2);
const chosen = args.filter((arg) => arg in kinds);
const env = Object.fromEntries(chosen.map((arg) => [kinds[arg], "1"]));
ensureReady();
run(
  process.execPath,
  [binary("vitest", "vitest.mjs"), "run", ...args.filter((arg) => !(arg in kinds))],
  { env: { ...process.env, ...env } },
);
// Everything was asked for: then also on the other versions of Node.
if (chosen.includes("--full") && args.length === 1) process.exit(testOnOtherNodes());
