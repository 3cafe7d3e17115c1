import type { StudioTab } from "../test/support/browser.js";
import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";
import { charts, Feed } from "./feed.js";

const perSecond = 100;
const seconds = 40;

/** 62: a run that logs a hundred points a second into each of twenty charts. */
export async function reportLive(server: StudioServer, tabs: typeof StudioTab): Promise<void> {
  const feed = await Feed.open(server, "live");
  const tab = await tabs.open(feed.url, { height: 3000 });
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
  await feed.flow(perSecond, 5);
  const before = await metrics();
  await feed.flow(perSecond, seconds);
  const after = await metrics();
  const busy = after.get("TaskDuration")! - before.get("TaskDuration")!;
  const wall = after.get("Timestamp")! - before.get("Timestamp")!;
  const what = `${perSecond} points per second into ${charts} charts, of a core`;
  budget("62", what, (100 * busy) / wall, 25, "%");
  await tab.close();
}
