import { checkMixers } from "./support/mixer-checks.js";

// A hundred of each are in mixers.system.test.ts.
checkMixers(10, 120_000);
