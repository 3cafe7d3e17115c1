import type { StudioTab } from "../test/support/browser.js";
import { logLines } from "../test/support/log-lines.js";
import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";
import { fill } from "./fill.js";
import { measureFrames } from "./frames.js";
import { median } from "./median.js";

/** 66: long lists of rollouts and of runs, and a rollout of many tokens. */
export async function reportLists(server: StudioServer, tabs: typeof StudioTab): Promise<void> {
  await logLines(server, "many", [{ kind: "open", name: "many" }]);
  for (let from = 0; from < 10_000; from += 500) {
    const rollouts = Array.from({ length: 500 }, (_, index) => ({
      group: Math.floor((from + index) / 8),
      index: (from + index) % 8,
      reward: ((from + index) * 7) % 11,
      text: `Rollout ${from + index} says something about the weather.`,
    }));
    await logLines(server, "many", [{ kind: "rollouts", step: 1, rollouts }]);
  }
  const ids = Array.from({ length: 4000 }, (_, index) => 300 + (index % 1500));
  const long = {
    group: 0,
    index: 0,
    reward: 1,
    tokens: ids,
    mask: ids.map((_, index) => (index % 3 === 0 ? 0 : 1)),
    logprobs: ids.map((_, index) => -((index * 37) % 50) / 10),
  };
  const training = await server.train(1);
  await logLines(server, "long", [
    { kind: "open", name: "long", models: [training.modelId] },
    { kind: "rollouts", step: 1, rollouts: [{ ...long, model: training.modelId }] },
  ]);
  const tab = await tabs.open(`${server.url}/studio/runs/many?tab=rollouts`);
  await tab.page.locator(".exhibit-row").first().waitFor();
  await tab.page.getByText("10,000 rollouts").waitFor();
  const kept = await tab.page.locator("p.padded").first().textContent();
  const { perSecond } = await measureFrames(tab.page, "scrollBy(0, 240);", 200);
  budget("66", `a list of rollouts scrolls (${kept?.trim()})`, perSecond, 55, "frames per second", {
    isLeast: true,
  });
  await tab.close();
  await fill(server, { runs: 5000, points: 20, name: "run" });
  const runs = await tabs.open(`${server.url}/studio`);
  await runs.page.getByText("5,002 runs").waitFor();
  const list = await measureFrames(runs.page, "scrollBy(0, 240);", 200);
  budget("66", "a list of 5,000 runs scrolls", list.perSecond, 55, "frames per second", {
    isLeast: true,
  });
  await runs.close();
  const other = await tabs.open(`${server.url}/studio/runs/long?tab=rollouts&colour=logprob`);
  await other.page.locator(".exhibit-row").first().waitFor();
  const times = await other.page.evaluate(async () => {
    const all: number[] = [];
    for (let time = 0; time < 6; time++) {
      const start = performance.now();
      document.querySelector<HTMLElement>(".exhibit-row")!.click();
      while (!document.querySelector(".tokens"))
        await new Promise((resolve) => requestAnimationFrame(resolve));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      all.push(performance.now() - start);
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
      while (document.querySelector(".tokens"))
        await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return all;
  });
  const took = median(times.slice(1));
  budget("66", "a token view of 4,000 tokens opens", took, 100, "ms");
  await other.close();
}
