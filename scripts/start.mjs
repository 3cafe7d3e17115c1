// `npm start`: makes the clone ready and runs the quickstart.
import { ensureReady, root, run } from "./ready.mjs";
import path from "node:path";

ensureReady();
run(process.execPath, [
  path.join(root, "packages/cli/bin/tinker-ts.js"),
  "quickstart",
  ...process.argv.slice(2),
]);
