import { writeFileSync } from "node:fs";
import { renderParityPage } from "./parity-page.js";

writeFileSync(new URL("../../../docs/parity.md", import.meta.url), renderParityPage());
