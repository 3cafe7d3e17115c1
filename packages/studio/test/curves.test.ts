import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StudioRunDetail } from "tinker-ts/wire/studio";
import type { Page } from "playwright-core";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { ask, logLines, runAddress } from "./support/log-lines.js";
import { StudioServer } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("curves", () => {
  let server: StudioServer;
  const address = (run: string, query = ""): string => runAddress(server, run, query);

  /** Logs a run with one metric. */
  const logRun = async (
    run: string,
    values: readonly (number | string)[],
    key = "nll",
  ): Promise<void> => {
    await logLines(server, run, [
      { kind: "open", name: run },
      ...values.map((value, step) => ({
        kind: "metrics",
        step,
        time: 1_700_000_000 + step * 10,
        metrics: { [key]: value, num_tokens: 100 },
      })),
    ]);
  };

  beforeAll(async () => {
    server = await StudioServer.start();
    await logRun(
      "plain",
      Array.from({ length: 60 }, (_, step) => 5 / (step + 1)),
    );
    await logRun("broken", [3, "NaN", 2, "NaN", "Infinity", "-Infinity", 1]);
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  it("23: marks what is not finite and counts it", async () => {
    await using tab = await StudioTab.open(address("broken"));
    const card = tab.page.locator('[data-metric="nll"]');
    await card.getByText("▲ 2 NaN").waitFor();
    await card.getByText("▲ 1 +Inf").waitFor();
    await card.getByText("▼ 1 −Inf").waitFor();
    // The lone finite point between two NaNs is a dot: pixels of the run's colour are where x is 2.
    expect(await inked(tab.page, "nll", 2 / 6)).toBeGreaterThan(0);
    await card.getByRole("button", { name: "Show as a table" }).click();
    const cells = await card.locator("tbody tr").allTextContents();
    expect(cells).toEqual(["03", "1NaN", "22", "3NaN", "4+Inf", "5−Inf", "61"]);
  });

  it("31: has one cursor over all charts, also for arrow keys, and reads values out", async () => {
    await using tab = await StudioTab.open(address("plain"));
    const { page } = tab;
    const chart = page.locator('[data-metric="nll"]').getByRole("slider");
    await chart.focus();
    // The points may still be on their way.
    const first = async (): Promise<string | null> => {
      await page.keyboard.press("Home");
      return chart.getAttribute("aria-valuetext");
    };
    await expect.poll(first).toBe("step 0: 5");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => chart.getAttribute("aria-valuetext")).toBe("step 1: 2.5");
    const lines = page.locator(".cursor-line");
    const shown = await lines.evaluateAll((all) =>
      all.map((line) => (line as HTMLElement).style.display),
    );
    expect(new Set(shown)).toEqual(new Set(["block"]));
  });

  it.runIf(isFull)("28: keeps x, scales, smoothing and the range in the address", async () => {
    await using tab = await StudioTab.open(address("plain"));
    const { page } = tab;
    await page.locator('[data-metric="nll"] canvas').waitFor();
    await page.keyboard.press("l");
    await expect.poll(() => page.url()).toContain("logy=1");
    await page.getByLabel("log x").check();
    await page.getByLabel("x axis").selectOption("tokens");
    await page.getByRole("slider", { name: "smoothing" }).fill("0.6");
    await expect.poll(() => page.url()).toMatch(/smooth=0\.6/);
    expect(page.url()).toMatch(/x=tokens/);
    expect(page.url()).toMatch(/logx=1/);
    await page.reload();
    await expect
      .poll(() => page.getByRole("slider", { name: "smoothing" }).inputValue())
      .toBe("0.6");
    expect(await page.getByLabel("log y").isChecked()).toBe(true);
    for (const x of ["time", "relative", "active", "step"]) {
      await page.getByLabel("x axis").selectOption(x);
      await page.locator('[data-metric="nll"] canvas').waitFor();
    }
  });

  it("25: zooms where one drags, 0 shows everything again, and news do not move the view", async () => {
    await using tab = await StudioTab.open(address("plain"));
    const { page } = tab;
    const over = page.locator('[data-metric="nll"] .u-over');
    await over.waitFor();
    const box = (await over.boundingBox())!;
    await page.mouse.move(box.x + box.width * 0.25, box.y + 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.75, box.y + 40, { steps: 4 });
    await page.mouse.up();
    await expect.poll(() => page.url()).toContain("zoom=");
    const zoomed = page.url();
    const chart = page.locator('[data-metric="nll"]').getByRole("slider");
    const range = async (): Promise<number[]> =>
      Promise.all(
        ["aria-valuemin", "aria-valuemax"].map(async (name) =>
          Number(await chart.getAttribute(name)),
        ),
      );
    const [from, to] = await range();
    expect(from).toBeGreaterThan(10);
    expect(to).toBeLessThan(50);
    await logLines(server, "plain", [{ kind: "metrics", step: 60, metrics: { nll: 0.05 } }]);
    await expect
      .poll(async () => {
        const { series } = await ask<StudioRunDetail>(server, "runs/plain");
        return series.find(({ key }) => key === "nll")?.lastX;
      })
      .toBe(60);
    expect(await range()).toEqual([from, to]);
    expect(page.url()).toBe(zoomed);
    await page.mouse.move(0, 0);
    await page.keyboard.press("0");
    await expect.poll(range).toEqual([0, 60]);
  });

  it("27: smooths as a reference does, from all points, and leaves a constant alone", async () => {
    await logRun(
      "constant",
      Array.from({ length: 50 }, () => 2.5),
    );
    await using tab = await StudioTab.open(address("constant", "?smooth=0.9&table=nll"));
    const rows = tab.page.locator('[data-metric="nll"] tbody tr');
    await rows.first().waitFor();
    const smoothed = await rows.locator("td:last-child").allTextContents();
    expect(new Set(smoothed)).toEqual(new Set(["2.5"]));
  });

  it("29: leaves outliers out of the view, not out of the run, and brings them back", async () => {
    const values = Array.from({ length: 100 }, (_, step) =>
      step === 50 ? 1000 : 1 + (step % 7) / 10,
    );
    await logRun("spiky", values);
    await using tab = await StudioTab.open(address("spiky", "?clip=1"));
    const button = tab.page.getByRole("button", { name: "1 point above" });
    await button.click();
    await button.waitFor({ state: "detached" });
    expect(tab.page.url()).not.toContain("clip");
  });

  it("28: tells how many values a log axis cannot show", async () => {
    await logRun("negative", [1, 0, -1, 2, 3]);
    await using tab = await StudioTab.open(address("negative", "?logy=1"));
    await tab.page.getByText("2 values ≤ 0 are not on a log axis").waitFor();
  });

  it("33: finds metrics by any part of their names or by an expression; pins stay on top in every run", async () => {
    await logLines(server, "many", [
      { kind: "open", name: "many" },
      {
        kind: "metrics",
        step: 1,
        metrics: { nll: 1, "env/all/turns": 2, "env/math/score": 3, "time/total": 4 },
      },
    ]);
    await using tab = await StudioTab.open(address("many"));
    const { page } = tab;
    await page.locator('[data-metric="nll"]').waitFor();
    const search = page.getByRole("searchbox", { name: /Find a metric/ });
    await search.fill("math");
    const names = (): Promise<(string | null)[]> =>
      page
        .locator("[data-metric]")
        .evaluateAll((all) => all.map((one) => one.getAttribute("data-metric")));
    await expect.poll(names).toEqual(["env/math/score"]);
    await search.fill("^env/.*(turns|score)$");
    await expect.poll(names).toEqual(["env/all/turns", "env/math/score"]);
    await page
      .locator('[data-metric="env/all/turns"]')
      .getByRole("button", { name: "Pin this metric" })
      .click();
    await search.fill("");
    await expect.poll(async () => (await names())[0]).toBe("env/all/turns");
    await logLines(server, "another", [
      { kind: "open", name: "another" },
      { kind: "metrics", step: 1, metrics: { nll: 1, "env/all/turns": 2 } },
    ]);
    await page.goto(address("another"));
    await expect.poll(async () => (await names())[0]).toBe("env/all/turns");
  });

  it("32: saves all points as CSV", async () => {
    await using tab = await StudioTab.open(address("plain"));
    const { page } = tab;
    const card = page.locator('[data-metric="nll"]');
    await card.hover();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      card.getByRole("button", { name: "All points as CSV" }).click(),
    ]);
    const text = await new Response(
      (await file.createReadStream()) as unknown as ReadableStream,
    ).text();
    expect(text.trim().split(/\r?\n/).length).toBeGreaterThanOrEqual(61);
  });

  it("30: draws a resumed run as one line with what was replaced behind it", async () => {
    const entries = (attempt: number, from: number, to: number, value: number) => [
      { kind: "open", name: "resumed", attempt },
      ...Array.from({ length: to - from }, (_, index) => ({
        kind: "metrics",
        step: from + index,
        metrics: { nll: value },
      })),
    ];
    await logLines(server, "resumed", entries(1, 0, 20, 3), "first");
    await logLines(server, "resumed", entries(2, 10, 30, 1), "second");
    await using tab = await StudioTab.open(address("resumed", "?table=nll"));
    const rows = tab.page.locator('[data-metric="nll"] tbody tr');
    await expect.poll(() => rows.count()).toBe(40);
    const texts = await rows.allTextContents();
    expect(texts.filter((text) => text.includes("attempt 1, replaced"))).toHaveLength(10);
    await tab.page.goto(address("resumed"));
    const chart = tab.page.locator('[data-metric="nll"]');
    await chart.getByRole("slider").focus();
    await tab.page.keyboard.press("Home");
    for (let press = 0; press < 15; press++) await tab.page.keyboard.press("ArrowRight");
    await chart.getByText("(attempt 1: 3)").waitFor();
  });

  it.runIf(isFull)(
    "24: shows a spike of one point in a hundred thousand, with its true value",
    async () => {
      const values = Array.from({ length: 100_000 }, (_, step) => (step === 61_803 ? 77.125 : 1));
      for (let from = 0; from < values.length; from += 4000) {
        await logLines(server, "long", [
          ...(from === 0 ? [{ kind: "open", name: "long" }] : []),
          ...values
            .slice(from, from + 4000)
            .map((nll, index) => ({ kind: "metrics", step: from + index, metrics: { nll } })),
        ]);
      }
      await using tab = await StudioTab.open(address("long"));
      const { page } = tab;
      const over = page.locator('[data-metric="nll"] .u-over');
      await over.waitFor();
      const box = (await over.boundingBox())!;
      await page.mouse.move(box.x + box.width * 0.61803, box.y + 20);
      await expect
        .poll(async () => {
          const texts: string[] = [];
          for (const shift of [-2, -1, 0, 1, 2]) {
            await page.mouse.move(box.x + box.width * 0.61803 + shift, box.y + 20);
            texts.push((await page.locator('[data-metric="nll"] .reading').textContent()) ?? "");
          }
          return texts.join(" ");
        })
        .toContain("77.125");
      expect(await inked(page, "nll", 0.61803, 0.5)).toBeGreaterThan(0);
    },
    300_000,
  );
});

/** How many pixels near a share of the width (and above a share of the height) are neither grid nor empty. */
async function inked(page: Page, metric: string, share: number, above = 1): Promise<number> {
  const canvas = page.locator(`[data-metric="${metric}"] canvas`);
  const over = page.locator(`[data-metric="${metric}"] .u-over`);
  await canvas.waitFor();
  const [whole, plot] = [(await canvas.boundingBox())!, (await over.boundingBox())!];
  const at = plot.x - whole.x + plot.width * share;
  return canvas.evaluate(
    (element, { x, top, height }) => {
      const target = element as HTMLCanvasElement;
      const ratio = target.width / target.clientWidth;
      const context = target.getContext("2d")!;
      const { data } = context.getImageData(
        (x - 4) * ratio,
        top * ratio,
        8 * ratio,
        height * ratio,
      );
      let inkedPixels = 0;
      for (let index = 0; index < data.length; index += 4) {
        const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(index, index + 4);
        if (alpha > 100 && Math.max(red, green, blue) - Math.min(red, green, blue) > 40)
          inkedPixels++;
      }
      return inkedPixels;
    },
    { x: at, top: plot.y - whole.y, height: plot.height * above - (above === 1 ? 14 : 0) },
  );
}
