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

  it("overlays runs named with a star; shows differences only, nested keys flat, keys with _ hidden", async () => {
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

  it("overlays twenty runs; a run has one colour on every screen", async () => {
    for (let index = 0; index < 20; index++)
      await logLines(server, `twenty-${index}`, [
        { kind: "open", name: `twenty-${index}`, config: { index } },
        { kind: "metrics", step: 0, metrics: { nll: index } },
        { kind: "metrics", step: 1, metrics: { nll: index + 1 } },
      ]);
    await using tab = await StudioTab.open(address("runs=twenty-*"));
    const { page } = tab;
    await expect.poll(() => page.locator(".tag-run").count()).toBe(20);
    const strokes = await page
      .locator(".tag-run line")
      .evaluateAll((all) =>
        all.map((one) => `${one.getAttribute("stroke")} ${one.getAttribute("stroke-dasharray")}`),
      );
    expect(new Set(strokes).size).toBe(20);
    const swatch = (): Promise<string> =>
      page
        .locator(".swatch")
        .first()
        .evaluate((one) => getComputedStyle(one).backgroundColor);
    const compared = await page
      .locator(".config-diff th", { hasText: /^\s*twenty-7$/ })
      .locator(".swatch")
      .evaluate((one) => getComputedStyle(one).backgroundColor);
    await page.goto(`${server.url}/studio/runs/twenty-7`);
    await page.locator(".run-header").waitFor();
    expect(await swatch()).toBe(compared);
    await page.goto(`${server.url}/studio?q=name:twenty-7`);
    await page.locator("[data-run]").waitFor();
    expect(await swatch()).toBe(compared);
  });

  it("the same prompts on several checkpoints show side by side", async () => {
    const paths: string[] = [];
    const ids: string[] = [];
    for (const name of ["first", "second"]) {
      const training = await server.train(2);
      ids.push(training.modelId);
      paths.push((await training.saveWeightsForSampler(name)).path);
    }
    await using tab = await StudioTab.open(address(`runs=${ids.join(",")}`));
    const { page } = tab;
    await page.getByRole("link", { name: /Ask the last checkpoints/ }).click();
    await page.getByRole("spinbutton", { name: "max tokens" }).fill("6");
    const field = page.getByRole("textbox", { name: "Prompt", exact: true });
    for (const prompt of ["The cat", "A tree"]) {
      await field.fill(prompt);
      await field.press("Control+Enter");
      await page.getByRole("button", { name: "Send" }).waitFor();
    }
    const columns = page.locator(".column");
    await expect.poll(() => columns.count()).toBe(2);
    const boxes = await columns.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()));
    expect(boxes[0]!.y).toBe(boxes[1]!.y);
    expect(boxes[1]!.x).toBeGreaterThanOrEqual(boxes[0]!.x + boxes[0]!.width);
    for (const [index, path] of paths.entries()) {
      const column = columns.nth(index);
      expect(await column.locator(".question").allTextContents()).toEqual(["The cat", "A tree"]);
      expect(new Set(await column.locator(".from").allTextContents())).toEqual(new Set([path]));
    }
    // The answers stay with their runs.
    await page.goto(`${server.url}/studio/runs/${encodeURIComponent(ids[1]!)}?tab=samples`);
    await expect.poll(() => page.locator(".exhibit-row").count()).toBe(2);
    await page.getByText(`weights ${paths[1]}`).waitFor();
    expect(await page.locator(".tokens").textContent()).toContain("The cat");
    expect(await tab.violations()).toEqual([]);
  }, 60_000);

  it.runIf(isFull)(
    "groups by a key and by all but the seed, with mean and number of runs",
    async () => {
      for (const by of ["optim.lr", "all-but-seed"]) {
        await using tab = await StudioTab.open(address(`runs=group:sweep&by=${by}`));
        const { page } = tab;
        const chart = page.locator('[data-metric="nll"]');
        await chart.getByRole("slider").focus();
        // The points may still be on their way.
        const first = async (): Promise<string[]> => {
          await page.keyboard.press("Home");
          return (await chart.locator(".values li").allTextContents()).toSorted();
        };
        await expect.poll(first).toHaveLength(2);
        const values = await first();
        expect(values[0]).toMatch(/lr 0\.1 3 n 2/); // the mean of 4 and 2
        expect(values[1]).toMatch(/lr 0\.2 1 n 1/);
      }
      // Several keys make as many groups as they have pairs of values.
      await using tab = await StudioTab.open(address("runs=group:sweep&by=optim.lr,seed"));
      const chart = tab.page.locator('[data-metric="nll"]');
      await chart.getByRole("slider").focus();
      await expect
        .poll(async () => {
          await tab.page.keyboard.press("Home");
          return (await chart.locator(".values li").allTextContents()).toSorted();
        })
        .toEqual([
          expect.stringMatching(/lr 0\.1.*seed 1 4 n 1/),
          expect.stringMatching(/lr 0\.1.*seed 2 2 n 1/),
          expect.stringMatching(/lr 0\.2.*seed 1 1 n 1/),
        ]);
    },
  );
});
