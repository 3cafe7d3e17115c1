import type { StudioTab } from "../test/support/browser.js";
import { logLines } from "../test/support/log-lines.js";
import type { StudioServer } from "../test/support/server.js";
import { budget } from "./budget.js";

/** 67: from a key press to a change that is seen. */
export async function reportKeys(server: StudioServer, tabs: typeof StudioTab): Promise<void> {
  const training = await server.train(5);
  await training.saveWeightsForSampler("end");
  const id = encodeURIComponent(training.modelId);
  const rollouts = Array.from({ length: 16 }, (_, index) => ({
    group: Math.floor(index / 4),
    index: index % 4,
    reward: index % 2,
    text: `Rollout ${index}`,
  }));
  await logLines(server, "with-rollouts", [
    { kind: "open", name: "with rollouts" },
    { kind: "rollouts", step: 1, rollouts },
  ]);
  const tab = await tabs.open(`${server.url}/studio`);
  const { page } = tab;
  await page.locator("[data-run]").first().waitFor();
  const cases: readonly [string, string, readonly string[], string][] = [
    ["overview, j", "", ["j"], ".run-row.active"],
    ["overview, /", "", ["/"], "input[type=search]:focus"],
    ["curves, l", `/runs/${id}`, ["l"], ".curve-toolbar input:checked"],
    [
      "data, [",
      `/runs/${id}?tab=data`,
      ["["],
      ".step-choice button:not(:disabled) ~ button:not(:disabled)",
    ],
    ["rollouts, j", "/runs/with-rollouts?tab=rollouts", ["j"], ".exhibit-row.open"],
    ["log, ?", "/runs/with-rollouts?tab=log", ["?"], "dialog[open]"],
    ["config, ?", `/runs/${id}?tab=config`, ["?"], "dialog[open]"],
    ["files, ?", `/runs/${id}?tab=files`, ["?"], "dialog[open]"],
    ["compare, l", `/compare?runs=${id}`, ["l"], ".curve-toolbar input:checked"],
    ["playground, ?", "/playground", ["?"], "dialog[open]"],
    ["checkpoints, ?", "/checkpoints", ["?"], "dialog[open]"],
    ["machine, ?", "/machine", ["?"], "dialog[open]"],
    ["machine to the runs, g r", "/machine", ["g", "r"], "[data-run]"],
  ];
  for (const [name, view, keys, seen] of cases) {
    await page.goto(`${server.url}/studio${view}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor({ state: "attached" });
    await page.locator("[aria-busy=true]").first().waitFor({ state: "detached" });
    await page.waitForTimeout(700);
    const took = await page.evaluate(
      async ([pressed, selector]) => {
        const start = performance.now();
        for (const key of pressed) {
          document.body.dispatchEvent(
            new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }),
          );
        }
        while (!document.querySelector(selector) && performance.now() - start < 5000) {
          await new Promise((resolve) => requestAnimationFrame(resolve));
        }
        await new Promise((resolve) => requestAnimationFrame(resolve));
        return performance.now() - start;
      },
      [keys, seen] as const,
    );
    budget("67", name, took, 100, "ms");
  }
  await tab.close();
}
