import type { StudioTab } from "../test/support/browser.js";
import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";
import { fill } from "./fill.js";
import { measureFrames } from "./frames.js";
import { median } from "./median.js";

const runs = 20;
const points = Number(process.env["POINTS"] ?? 100_000);

/** 60: twenty long runs over each other. */
export async function reportCurves(server: StudioServer, tabs: typeof StudioTab): Promise<void> {
  await fill(server, { runs, points, name: "long" });
  const query = new URLSearchParams({ keys: "nll", x: "step", buckets: "600" });
  for (let run = 0; run < runs; run++) query.append("runs", `long-${run}`);
  const answers: number[] = [];
  for (let attempt = 0; attempt < 6; attempt++) {
    const start = performance.now();
    const response = await fetch(`${server.url}/studio/api/series?${query.toString()}`);
    await response.arrayBuffer();
    answers.push(performance.now() - start);
  }
  const [cold, ...warm] = answers;
  console.log(`      the first answer of the server: ${cold!.toFixed(0)} ms`);
  budget("60", `${runs} runs of ${points} points: answer`, median(warm), 100, "ms");
  const tab = await tabs.open(`${server.url}/studio/compare?runs=long-*`);
  const over = tab.page.locator('[data-metric="nll"] .u-over');
  await over.waitFor();
  await tab.page.waitForTimeout(2000);
  const wheel = `
    const over = document.querySelector('[data-metric="nll"] .u-over');
    const { left, top, width } = over.getBoundingClientRect();
    const deltaY = frame % 60 < 30 ? -10 : 10;
    over.dispatchEvent(new WheelEvent("wheel", { ctrlKey: true, deltaY, clientX: left + width * 0.4, clientY: top + 50, bubbles: true, cancelable: true }));`;
  const zooming = await measureFrames(tab.page, wheel);
  budget("60", "zooming, frames per second", zooming.perSecond, 55, "", { isLeast: true });
  budget("60", "zooming, longest frame", zooming.longestMs, 50, "ms");
  const pan = `
    const over = document.querySelector('[data-metric="nll"] .u-over');
    const { left, top, width } = over.getBoundingClientRect();
    const x = left + width / 2 + Math.sin(frame / 20) * 100;
    const options = { shiftKey: true, clientX: x, clientY: top + 50, bubbles: true, cancelable: true };
    if (frame === 0) over.dispatchEvent(new MouseEvent("mousedown", options));
    document.dispatchEvent(new MouseEvent("mousemove", options));
    if (frame === 119) document.dispatchEvent(new MouseEvent("mouseup", options));`;
  const panning = await measureFrames(tab.page, pan);
  budget("60", "panning, frames per second", panning.perSecond, 55, "", { isLeast: true });
  budget("60", "panning, longest frame", panning.longestMs, 50, "ms");
  await tab.close();
}
