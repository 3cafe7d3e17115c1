// `npm test [-- <vitest arguments>]` and `npm run test:full`.
import { binary, ensureReady, run } from "./ready.mjs";

const args = process.argv.slice(2);
const full = args.includes("--full");
ensureReady();
run(
  process.execPath,
  [binary("vitest", "vitest.mjs"), "run", ...args.filter((arg) => arg !== "--full")],
  { env: { ...process.env, ...(full ? { TINKER_TS_TEST_FULL: "1" } : {}) } },
);
