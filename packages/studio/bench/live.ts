import { existsSync, readFileSync } from "node:fs";
import { browser, type StudioTab } from "../test/support/browser.js";
import { logLines } from "../test/support/log-lines.js";
import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";

const charts = 20;
const perSecond = 100;
/** As often as a logger sends. */
const batches = 4;
// An hour says more, and takes one.
const seconds = process.env["HOUR"] === "1" ? 3600 : 40;

/** 62, 63: a run that logs a hundred points a second into each of twenty charts. */
export async function reportLive(server: StudioServer, tabs: typeof StudioTab): Promise<void> {
  const keys = Array.from({ length: charts }, (_, index) => `live/metric${index}`);
  let step = 0;
  const entries = (count: number): object[] =>
    Array.from({ length: count }, () => {
      step++;
      return {
        kind: "metrics",
        step,
        metrics: Object.fromEntries(keys.map((key, index) => [key, Math.sin(step / 50 + index)])),
      };
    });
  await logLines(server, "live", [{ kind: "open", name: "live" }, ...entries(10)]);
  const tab = await tabs.open(`${server.url}/studio/runs/live?find=metric`, { height: 3000 });
  await tab.page
    .locator("[data-metric] canvas")
    .nth(charts - 1)
    .waitFor();
  const session = await tab.context.newCDPSession(tab.page);
  await session.send("Performance.enable");
  const metrics = async (): Promise<Map<string, number>> => {
    await session.send("HeapProfiler.collectGarbage");
    const { metrics: list } = await session.send("Performance.getMetrics");
    return new Map(list.map(({ name, value }) => [name, value]));
  };
  const feed = async (duration: number): Promise<void> => {
    const end = performance.now() + duration * 1000;
    while (performance.now() < end) {
      const start = performance.now();
      await logLines(server, "live", entries(perSecond / batches));
      await new Promise((resolve) => {
        setTimeout(resolve, Math.max(0, 1000 / batches - (performance.now() - start)));
      });
    }
  };
  await feed(5);
  const before = await metrics();
  await feed(seconds);
  const after = await metrics();
  const busy = after.get("TaskDuration")! - before.get("TaskDuration")!;
  const wall = after.get("Timestamp")! - before.get("Timestamp")!;
  budget(
    "62",
    `${perSecond} points per second into ${charts} charts, of a core`,
    (100 * busy) / wall,
    25,
    "%",
  );
  const heap = after.get("JSHeapUsedSize")! / 1e6;
  budget("63", `live for ${seconds} s: memory of the page's heap`, heap, 150, "MB");
  const own = await ownMemory();
  if (own !== null) {
    budget("63", `live for ${seconds} s: memory of the page's process alone`, own, 150, "MB");
  }
  budget(
    "63",
    `live for ${seconds} s: nodes, compared with the beginning`,
    after.get("Nodes")! / before.get("Nodes")!,
    1.1,
    "x",
  );
  await tab.close();
}

/** What the process of the page takes for itself, in megabytes; null where the system does not say. */
async function ownMemory(): Promise<number | null> {
  const session = await (await browser()).newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const sizes = processInfo
    .filter(({ type }) => type === "renderer")
    .map(({ id }) => {
      const file = `/proc/${id}/smaps_rollup`;
      const text = existsSync(file) ? readFileSync(file, "utf8") : "";
      const kilobytes = [...text.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].map(([, size]) =>
        Number(size),
      );
      return kilobytes.reduce((sum, size) => sum + size, 0) / 1000;
    });
  const largest = Math.max(0, ...sizes);
  return largest > 0 ? largest : null;
}
