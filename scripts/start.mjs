// `npm start`: makes the clone ready and shows what is there.
import { binary, ensureReady, run } from "./ready.mjs";

ensureReady();
console.log("\nWhat exists so far is the wire layer: every message of the Tinker API, both ways.");
console.log("This is examples/wire.ts:\n");
run(process.execPath, [binary("tsx", "dist/cli.mjs"), "examples/wire.ts"]);
