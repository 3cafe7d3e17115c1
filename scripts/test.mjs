// `npm test [-- <vitest arguments>]` and `npm run test:full`.
import { testOnOtherNodes } from "./other-nodes.mjs";
import { binary, ensureReady, run } from "./ready.mjs";

const args = process.argv.slice(2);
const full = args.includes("--full");
ensureReady();
run(
  process.execPath,
  [binary("vitest", "vitest.mjs"), "run", ...args.filter((arg) => arg !== "--full")],
  { env: { ...process.env, ...(full ? { TINKER_TS_TEST_FULL: "1" } : {}) } },
);
// Everything was asked for: then also on the other versions of Node.
if (full && args.length === 1) process.exit(testOnOtherNodes());
