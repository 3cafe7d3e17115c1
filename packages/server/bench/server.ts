// What the server costs on top of the engine, how it bears load, and how soon it is ready.
//   npm run bench -w packages/server [-- readiness overhead durability load bodies owners prices openai masks]
import { loadavg } from "node:os";
import { openBenchModel } from "./bench-model.js";
import { reportBodies } from "./bodies.js";
import { reportDurability } from "./durability.js";
import { reportLoad } from "./load.js";
import { reportMasks } from "./masks.js";
import { line } from "./measure.js";
import { reportOpenAi } from "./openai.js";
import { reportOverhead } from "./overhead.js";
import { reportOwners } from "./owners.js";
import { reportPrices } from "./prices.js";
import { reportReadiness } from "./readiness.js";

const reports = {
  readiness: reportReadiness,
  overhead: reportOverhead,
  durability: reportDurability,
  load: reportLoad,
  bodies: reportBodies,
  owners: reportOwners,
  prices: reportPrices,
  openai: reportOpenAi,
  masks: reportMasks,
};

const chosen = process.argv.slice(2);
const model = await openBenchModel();
line("model", model.name);
line("load of the machine", `${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
for (const [name, report] of Object.entries(reports)) {
  if (chosen.length === 0 || chosen.includes(name)) await report(model);
}
