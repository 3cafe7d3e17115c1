import { checkMixers } from "./support/mixer-checks.js";

checkMixers(100, 1_800_000);
