// What the page costs, as measured / budget:  npm run bench -w packages/studio [-- size paint curves live lists keys server]
// Everything happens in a real browser against a real server. `HOUR=1` lets `live` run for an hour.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { loadavg } from "node:os";
import path from "node:path";
import { closeBrowser, StudioTab } from "../test/support/browser.js";
import { StudioServer } from "../test/support/server.js";
import { buildAssets } from "../scripts/build-assets.mjs";
import { reportCurves } from "./curves.js";
import { reportKeys } from "./keys.js";
import { reportLists } from "./lists.js";
import { reportLive } from "./live.js";
import { reportPaint } from "./paint.js";
import { reportSize } from "./size.js";

const chosen = process.argv.slice(2);
const isChosen = (name: string): boolean => chosen.length === 0 || chosen.includes(name);

await buildAssets();
console.log(`load of the machine ${loadavg()[0]?.toFixed(1)}; repeat when it is above 1`);
if (isChosen("size")) await reportSize();
const reports = {
  paint: reportPaint,
  curves: reportCurves,
  live: reportLive,
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
// Points 61, 64 and 65 are of the server.
const serverBench = path.resolve(import.meta.dirname, "../../server/bench/studio.ts");
if (isChosen("server") && existsSync(serverBench)) {
  spawnSync("npm", ["run", "bench", "-w", "packages/server", "--", "studio"], {
    cwd: path.resolve(import.meta.dirname, "../../.."),
    stdio: "inherit",
  });
}
