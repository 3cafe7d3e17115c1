import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { StudioRunDetail, StudioRuns } from "tinker-ts/wire/studio";
import type { Page } from "playwright-core";
import { closeBrowser, StudioTab, textOf } from "./support/browser.js";
import { ask, logLines, runAddress } from "./support/log-lines.js";
import { planeOf } from "./support/plane.js";
import { StudioServer } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const readsPixels = { allowedFailures: [/getImageData/] }; // only the tests read them often

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

  it("marks and counts non-finite values", async () => {
    await using tab = await StudioTab.open(address("broken"), readsPixels);
    const card = tab.page.locator('[data-metric="nll"]');
    await card.getByText("▲ 2 NaN").waitFor();
    await card.getByText("▲ 1 +Inf").waitFor();
    await card.getByText("▼ 1 −Inf").waitFor();
    // The lone finite point between two NaNs is a dot: pixels of the run's colour are where x is 2.
    await expect.poll(() => inked(tab.page, "nll", 2 / 6)).toBeGreaterThan(0);
    await card.getByRole("button", { name: "Show as a table" }).click();
    await expect
      .poll(() => card.locator("tbody tr").allTextContents())
      .toEqual(["03", "1NaN", "22", "3NaN", "4+Inf", "5−Inf", "61"]);
  });

  it("has one cursor over all charts, also for arrow keys, and reads values out", async () => {
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
    const shown = async (): Promise<Set<string>> =>
      new Set(
        await lines.evaluateAll((all) => all.map((line) => (line as HTMLElement).style.display)),
      );
    await expect.poll(shown).toEqual(new Set(["block"]));
  });

  it.runIf(isFull)("keeps x, scales, smoothing and the range in the address", async () => {
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
  });

  it("has step, tokens, time of day, time with and without pauses, or another metric as x", async () => {
    const second = (step: number): number => 1_700_000_000 + step * 10 + (step >= 3 ? 7200 : 0);
    await logLines(server, "axes", [
      { kind: "open", name: "axes" },
      ...[5, 4, 3, 2, 1, 0.5].map((nll, step) => ({
        kind: "metrics",
        step,
        time: second(step),
        metrics: { nll, num_tokens: 100, "time/examples": step * 8 + 8 },
      })),
    ]);
    const expected: Readonly<Record<string, readonly string[]>> = {
      step: ["0", "1", "2", "3", "4", "5"],
      tokens: ["100", "200", "300", "400", "500", "600"],
      "time/examples": ["8", "16", "24", "32", "40", "48"],
      relative: ["0 ms", "10 s", "20 s", "2 h", "2 h", "2 h"],
      active: ["0 ms", "10 s", "20 s", "20 s", "30 s", "40 s"],
    };
    await using tab = await StudioTab.open(address("axes", "?table=nll"));
    const { page } = tab;
    const places = async (): Promise<string[]> =>
      page
        .locator('[data-metric="nll"] tbody tr')
        .evaluateAll((all) => all.map((row) => row.firstElementChild?.textContent ?? ""));
    for (const [x, texts] of Object.entries(expected)) {
      await page.getByLabel("x axis").selectOption(x);
      await expect.poll(places, { message: x }).toEqual(texts);
      if (x !== "step") expect(new URL(page.url()).searchParams.get("x")).toBe(x);
    }
    await page.getByLabel("x axis").selectOption("time");
    await expect.poll(async () => new Set(await places()).size).toBe(6);
    await using linked = await StudioTab.open(address("axes", "?x=time/examples&logx=1&logy=1"));
    expect(await linked.page.getByLabel("x axis").inputValue()).toBe("time/examples");
    const chart = linked.page.locator('[data-metric="nll"]').getByRole("slider");
    await expect
      .poll(async () => {
        await chart.focus();
        await linked.page.keyboard.press("End");
        return chart.getAttribute("aria-valuetext");
      })
      .toBe("time/examples 48: 0.5");
  });

  it("zooms by dragging, resets with 0, and does not move the view on new points", async () => {
    await using tab = await StudioTab.open(address("plain"));
    const { page } = tab;
    const plane = await planeOf(page, "nll", 60);
    await plane.hover(); // stands still
    const box = (await plane.boundingBox())!;
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
    await expect.poll(async () => (await range())[0]).toBeGreaterThan(10);
    const [from, to] = await range();
    expect(to).toBeLessThan(50);
    await logLines(server, "plain", [{ kind: "metrics", step: 60, metrics: { nll: 0.05 } }]);
    await expect
      .poll(async () => {
        const { series } = await ask<StudioRunDetail>(server, "runs/plain");
        return series.find(({ key }) => key === "nll")?.lastX;
      })
      .toBe(60);
    await page.locator(".run-header").getByText("step 60").waitFor(); // the page knows
    expect(await range()).toEqual([from, to]);
    expect(page.url()).toBe(zoomed);
    await logRun(
      "dense",
      Array.from({ length: 5000 }, (_, step) => step),
    );
    await using dense = await StudioTab.open(address("dense", "?table=nll"));
    const head = dense.page.locator('[data-metric="nll"] thead');
    await head.getByText("least", { exact: true }).waitFor(); // several points in a row
    await dense.page.goto(address("dense", "?table=nll&zoom=2000,2010"));
    await expect
      .poll(() => dense.page.locator('[data-metric="nll"] tbody tr').allTextContents())
      .toContain("2,0052005");
    expect(await head.getByText("least", { exact: true }).count()).toBe(0);
    await page.mouse.move(0, 0);
    await page.keyboard.press("0");
    await expect.poll(range).toEqual([0, 60]);
  });

  it("smooths like a reference, from all points, at every zoom, and keeps a constant", async () => {
    const values = Array.from({ length: 1500 }, (_, step) => Math.sin(step / 3) + ((step * 7) % 5));
    await logRun("wavy", values);
    await logRun(
      "constant",
      Array.from({ length: 50 }, () => 2.5),
    );
    // At 0.9 a value counts half after as many steps as it takes 0.9 to become a half.
    const halfLife = Math.log(0.5) / Math.log(0.9);
    const means: number[] = [];
    let [sum, weight] = [0, 0];
    for (const value of values) {
      sum = sum * 2 ** (-1 / halfLife) + value;
      weight = weight * 2 ** (-1 / halfLife) + 1;
      means.push(sum / weight);
    }
    const smoothed = async (query: string): Promise<readonly (readonly [number, number])[]> => {
      await using tab = await StudioTab.open(address("wavy", `?smooth=0.9&table=nll${query}`));
      const rows = tab.page.locator('[data-metric="nll"] tbody tr');
      await rows.first().waitFor();
      const cells = await rows.evaluateAll((all) =>
        all.map((row) => [...row.children].map((cell) => cell.textContent ?? "")),
      );
      return cells.map((texts) => [numberIn(texts[0]!), numberIn(texts.at(-1)!)]);
    };
    // The range that is asked for is wider than the one that is seen, and all of it is points.
    const near = await smoothed("&zoom=700,900");
    expect(near.length).toBeGreaterThan(200);
    for (const [x, value] of near) expect(value).toBeCloseTo(means[x]!, 3);
    // Where points are put together, the mean is that behind the last of them.
    const far = await smoothed("");
    expect(far.length).toBeLessThan(900);
    for (const [index, [, value]] of far.entries()) {
      const next = far[index + 1]?.[0] ?? values.length;
      expect(value).toBeCloseTo(means[next - 1]!, 3);
    }
    await using tab = await StudioTab.open(address("constant", "?smooth=0.9&table=nll"));
    const rows = tab.page.locator('[data-metric="nll"] tbody tr');
    await rows.first().waitFor();
    const same = await rows.locator("td:last-child").allTextContents();
    expect(new Set(same)).toEqual(new Set(["2.5"]));
  });

  it("ignores outliers in the view, not in the run, and shows them again", async () => {
    const values = Array.from({ length: 100 }, (_, step) =>
      step === 50 ? 1000 : 1 + (step % 7) / 10,
    );
    await logRun("spiky", values);
    // A run that lies far from the others is no outlier.
    await logRun(
      "far",
      Array.from({ length: 100 }, () => -5),
    );
    await using both = await StudioTab.open(
      `${server.url}/studio/compare?runs=spiky,far&clip=1&find=nll`,
      readsPixels,
    );
    await both.page.locator('[data-metric="nll"] canvas').waitFor();
    await both.page.getByText("1 point above").waitFor();
    for (const share of [0.2, 0.8])
      await expect
        .poll(() => coloursAt(both.page, "nll", share), { message: "both runs are drawn" })
        .toBeGreaterThanOrEqual(2);
    await using tab = await StudioTab.open(address("spiky", "?clip=1"));
    const button = tab.page.getByRole("button", { name: "1 point above" });
    await button.click();
    await button.waitFor({ state: "detached" });
    expect(tab.page.url()).not.toContain("clip");
  });

  it("counts the values that a log axis cannot show", async () => {
    await logRun("negative", [1, 0, -1, 2, 3]);
    await using tab = await StudioTab.open(address("negative", "?logy=1"));
    await tab.page.getByText("2 values ≤ 0 are not on a log axis").waitFor();
  });

  it("finds metrics by any part of their names or by an expression; pins stay on top in every run", async () => {
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

  it("saves all points as CSV", async () => {
    await using tab = await StudioTab.open(address("plain"));
    const { page } = tab;
    const card = page.locator('[data-metric="nll"]');
    await card.hover();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      card.getByRole("button", { name: "All points as CSV" }).click(),
    ]);
    const [names = "", ...rows] = (await textOf(file)).trim().split(/\r?\n/);
    const column = names.split(",").indexOf("nll");
    const logged = rows.map((row) => Number(row.split(",")[column]));
    expect(logged.slice(0, 60)).toEqual(Array.from({ length: 60 }, (_, step) => 5 / (step + 1)));
    // The table has the same numbers, as far as they are shown.
    await card.getByRole("button", { name: "Show as a table" }).click();
    const cells = card.locator("tbody tr td:last-child");
    await expect.poll(() => cells.count()).toBe(logged.length);
    for (const [index, value] of (await cells.allTextContents()).entries())
      expect(numberIn(value)).toBeCloseTo(logged[index]!, 3);
  });

  it("saves all points of a reduced chart, and escapes formulas in cells", async () => {
    await logRun(
      "nine-thousand",
      Array.from({ length: 9000 }, (_, step) => step / 8),
      "=cmd",
    );
    await using tab = await StudioTab.open(address("nine-thousand"));
    const { page } = tab;
    const card = page.locator('[data-metric="=cmd"]');
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      card.getByRole("button", { name: "All points as CSV" }).click(),
    ]);
    const rows = (await textOf(file)).trim().split(/\r?\n/);
    expect(rows).toHaveLength(9001);
    expect(rows.join("\n")).not.toMatch(/(^|,)"?=cmd/m);
  });

  it("draws a resumed run as one line with replaced points behind it", async () => {
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
    await chart.getByRole("slider", { name: "30 points" }).focus();
    await tab.page.keyboard.press("Home");
    for (let press = 0; press < 15; press++) await tab.page.keyboard.press("ArrowRight");
    await chart.getByText("(attempt 1: 3)").waitFor();
  });

  it("shows a spike of one point in a million, with its true value", async () => {
    const logs = mkdtempSync(path.join(tmpdir(), "tinker-ts-million-"));
    mkdirSync(path.join(logs, "million"));
    const lines = Array.from(
      { length: 1_000_000 },
      (_, step) => `{"step":${step},"nll":${step === 618_034 ? 77.125 : 1}}\n`,
    );
    writeFileSync(path.join(logs, "million", "metrics.jsonl"), lines.join(""));
    const many = await StudioServer.start("--logs", logs);
    try {
      const idOf = async (): Promise<string | undefined> => {
        const { runs } = await ask<StudioRuns>(many, "runs");
        return runs.find(({ step }) => step === 999_999)?.id; // read to its end
      };
      await expect.poll(idOf, { timeout: 60_000 }).toBeDefined();
      await using tab = await StudioTab.open(runAddress(many, (await idOf())!), readsPixels);
      const { page } = tab;
      const plane = await planeOf(page, "nll", 1_000_000);
      await plane.hover(); // stands still
      const box = (await plane.boundingBox())!;
      await expect
        .poll(async () => {
          const texts: string[] = [];
          for (const shift of [-2, -1, 0, 1, 2]) {
            await page.mouse.move(box.x + box.width * 0.618034 + shift, box.y + 20);
            texts.push((await page.locator('[data-metric="nll"] .reading').textContent()) ?? "");
          }
          return texts.join(" ");
        })
        .toContain("77.125");
      await expect.poll(() => inked(page, "nll", 0.618034, 0.5)).toBeGreaterThan(0);
    } finally {
      await many.close();
      rmSync(logs, { recursive: true, force: true });
    }
  }, 180_000);
});

/** A number as the page writes it. */
function numberIn(text: string): number {
  return Number(text.replaceAll(",", "").replaceAll("−", "-"));
}

/** How many different colours of lines are near a share of the width. */
async function coloursAt(page: Page, metric: string, share: number): Promise<number> {
  const canvas = page.locator(`[data-metric="${metric}"] canvas`);
  return canvas.evaluate((element, at) => {
    const target = element as HTMLCanvasElement;
    const { data } = target
      .getContext("2d")!
      .getImageData(target.width * at, 0, Math.ceil(target.width / 20), target.height);
    const hues = new Map<number, number>();
    for (let index = 0; index < data.length; index += 4) {
      const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(index, index + 4);
      const most = Math.max(red, green, blue);
      const least = Math.min(red, green, blue);
      if (alpha < 200 || most - least < 60) continue;
      const sixth =
        most === red
          ? (green - blue) / (most - least)
          : most === green
            ? 2 + (blue - red) / (most - least)
            : 4 + (red - green) / (most - least);
      const hue = Math.round(((sixth + 6) % 6) * 5) % 30;
      hues.set(hue, (hues.get(hue) ?? 0) + 1);
    }
    return [...hues.values()].filter((size) => size > 15).length;
  }, share);
}

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
