import type { StudioTab } from "../test/support/browser.js";
import { logLines } from "../test/support/log-lines.js";
import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";
import { median } from "./median.js";

/** 59: how soon something is seen, and how soon a hundred runs can be used. */
export async function reportPaint(server: StudioServer, tabs: typeof StudioTab): Promise<void> {
  for (let index = 0; index < 100; index++) {
    await logLines(server, `run-${index}`, [
      { kind: "open", name: `run-${index}`, tags: ["sft"], config: { lr: index / 1000 } },
      ...Array.from({ length: 20 }, (_, step) => ({
        kind: "metrics",
        step,
        metrics: { nll: 5 / (step + 1) },
      })),
    ]);
  }
  const paints: number[] = [];
  const usable: number[] = [];
  for (let attempt = 0; attempt < 6; attempt++) {
    const tab = await tabs.open(`${server.url}/studio`);
    await tab.page.locator("[data-run]").nth(10).waitFor();
    const [paint, rows] = await tab.page.evaluate(() => {
      const [entry] = performance.getEntriesByName("first-contentful-paint");
      return [entry?.startTime ?? Number.NaN, performance.now()];
    });
    if (attempt > 0) {
      paints.push(paint);
      usable.push(rows);
    }
    await tab.close();
  }
  budget("59", "first contentful paint", median(paints), 300, "ms");
  budget("59", "overview with 100 runs can be used", median(usable), 500, "ms");
}
