// What the studio costs, each point of its budget as measured / budget. Lines with ! miss it.
//   npm run bench -w packages/studio [-- build size paint curves live memory lists keys server]
// Everything happens in a real browser against a real server; points 61, 64 and 65 are measured in the server alone.
// `HOUR=1` lets `memory` run for an hour.
import { spawnSync } from "node:child_process";
import { loadavg } from "node:os";
import path from "node:path";
import { closeBrowser, StudioTab } from "../test/support/browser.js";
import { StudioServer } from "../test/support/server.js";
import { buildAssets } from "../scripts/build-assets.mjs";
import { reportBuild } from "./build.js";
import { reportCurves } from "./curves.js";
import { reportKeys } from "./keys.js";
import { reportLists } from "./lists.js";
import { reportLive } from "./live.js";
import { reportMemory } from "./memory.js";
import { reportPaint } from "./paint.js";
import { reportSize } from "./size.js";

const chosen = process.argv.slice(2);
const isChosen = (name: string): boolean => chosen.length === 0 || chosen.includes(name);

console.log(`load of the machine ${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
if (isChosen("build")) reportBuild();
await buildAssets();
if (isChosen("size")) await reportSize();
const reports = {
  paint: reportPaint,
  curves: reportCurves,
  live: reportLive,
  memory: reportMemory,
  lists: reportLists,
  keys: reportKeys,
};
for (const [name, report] of Object.entries(reports)) {
  if (!isChosen(name)) continue;
  const server = await StudioServer.start("--capture", "all");
  try {
    await report(server, StudioTab);
  } finally {
    await server.close();
  }
}
await closeBrowser();
if (isChosen("server")) {
  const root = path.resolve(import.meta.dirname, "../../..");
  const args = ["run", "-s", "bench:studio", "-w", "packages/server"];
  const { status } = spawnSync("npm", args, { cwd: root, stdio: "inherit" });
  if (status !== 0) throw new Error("the part of the server failed");
}
