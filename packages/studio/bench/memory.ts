import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";
import { charts, Feed } from "./feed.js";
import { PlainBrowser } from "./plain-browser.js";

// An hour says more, and takes one.
const seconds = process.env["HOUR"] === "1" ? 3600 : 60;
const perSecond = 100;
/** Less often than a logger sends, so that an hour can be run beside other work. */
const batches = 1;
const settleSeconds = 10;

/** 63: what a page takes that stays open beside a run. */
export async function reportMemory(server: StudioServer): Promise<void> {
  const feed = await Feed.open(server, "live");
  await using browser = await PlainBrowser.open(feed.url, [1280, 3000]);
  await feed.flow(perSecond, settleSeconds, batches);
  await browser.held(); // the first look leaves something of its own
  const before = await browser.held();
  if (before.charts.length !== charts) throw new Error("not every chart is there");
  const minutes = Math.ceil(seconds / 60);
  const sizes: number[] = [];
  for (let minute = 0; minute < minutes; minute++) {
    await feed.flow(perSecond, seconds / minutes, batches);
    sizes.push(browser.ownMegabytes()); // nothing is attached
    if (minute % 10 === 9) console.log(`      after ${minute + 1} minutes ${told(sizes)}`);
  }
  const own = sizes.at(-1)!;
  const after = await browser.held();
  if (after.charts.some((text) => before.charts.includes(text)))
    throw new Error(`not every chart went on: ${after.charts.join("; ")}`);
  const what = `${charts} charts live for ${seconds} s:`;
  budget("63", `${what} memory of the page's process`, own, 150, "MB");
  budget("63", `${what} of that its heap`, after.heapBytes / 1e6, 150, "MB");
  budget("63", `${what} nodes, end to beginning`, after.nodes / before.nodes, 1.1, "x");
  const listeners = after.listeners / before.listeners;
  budget("63", `${what} listeners, end to beginning`, listeners, 1.1, "x");
}

/** Memory that is free to go comes and goes by halves, so the last figure does not say all. */
function told(sizes: readonly number[]): string {
  const [least, most, last] = [Math.min(...sizes), Math.max(...sizes), sizes.at(-1)!];
  return `${last.toFixed(0)} MB, so far ${least.toFixed(0)} to ${most.toFixed(0)}`;
}
