import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { logLines } from "./support/log-lines.js";
import { StudioServer } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("comparing runs", () => {
  let server: StudioServer;

  beforeAll(async () => {
    server = await StudioServer.start();
    for (const [lr, seed, value] of [
      [0.1, 1, 4],
      [0.1, 2, 2],
      [0.2, 1, 1],
    ] as const) {
      await logLines(server, `sweep-${lr}-${seed}`, [
        {
          kind: "open",
          name: `sweep-${lr}-${seed}`,
          group: "sweep",
          config: { optim: { lr }, seed, same: "everywhere", _hidden: seed },
        },
        ...[0, 1, 2, 3].map((step) => ({ kind: "metrics", step, metrics: { nll: value + step } })),
      ]);
    }
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  const address = (query: string): string => `${server.url}/studio/compare?${query}`;

  it("43: overlays runs named with a star; shows differences only, nested keys flat, keys with _ hidden", async () => {
    await using tab = await StudioTab.open(address("runs=sweep-*"));
    const { page } = tab;
    await expect.poll(() => page.locator(".tag-run").count()).toBe(3);
    const rows = page.locator(".config-diff tbody th");
    await expect
      .poll(() => rows.allTextContents())
      .toEqual(["optim.lr", "seed", "nll, last", "reward, last"]);
    await page.getByLabel("differences only").uncheck();
    await expect.poll(() => rows.allTextContents()).toContain("same");
    expect(await rows.allTextContents()).not.toContain("_hidden");
    const colours = (): Promise<(string | null)[]> =>
      page
        .locator(".tag-run line")
        .evaluateAll((all) => all.map((one) => one.getAttribute("stroke")));
    const before = await colours();
    await page.reload();
    await expect.poll(colours).toEqual(before);
    await page.goto(`${server.url}/studio`);
    await page.locator("[data-run]").first().waitFor();
    expect(await tab.violations()).toEqual([]);
  });

  it.runIf(isFull)(
    "44: groups by a key and by all but the seed: mean and number of runs are right",
    async () => {
      for (const by of ["optim.lr", "all-but-seed"]) {
        await using tab = await StudioTab.open(address(`runs=group:sweep&by=${by}`));
        const { page } = tab;
        const chart = page.locator('[data-metric="nll"]');
        await chart.getByRole("slider").focus();
        await page.keyboard.press("Home");
        await expect.poll(() => chart.locator(".values li").allTextContents()).toHaveLength(2);
        const values = (await chart.locator(".values li").allTextContents()).toSorted();
        expect(values[0]).toMatch(/lr 0\.1 3 n 2/); // the mean of 4 and 2
        expect(values[1]).toMatch(/lr 0\.2 1 n 1/);
      }
    },
  );
});
