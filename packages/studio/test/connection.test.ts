import type { Page } from "playwright-core";
import type { StudioRuns } from "tinker-ts/wire/studio";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { hold } from "./support/hold.js";
import { ask, logLines, runAddress } from "./support/log-lines.js";
import { StudioServer, trainStep } from "./support/server.js";

let server: StudioServer;
beforeAll(async () => {
  server = await StudioServer.start();
}, 60_000);
afterAll(async () => {
  await closeBrowser();
  await server.close();
});

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("the connection", () => {
  it("is shown as lost while the page stays, and fills the gap when it is back", async () => {
    const training = await server.train(2);
    const tab = await StudioTab.open(`${server.url}/studio`, { allowedFailures: [/./] });
    await tab.page.getByRole("row", { name: /sprout.* 2 / }).waitFor();
    await server.kill();
    await tab.page
      .getByText(/reconnecting|offline/i)
      .first()
      .waitFor({ timeout: 5000 });
    expect(await tab.page.getByRole("row", { name: /sprout.* 2 / }).count()).toBe(1);
    await server.start();
    await trainStep(training);
    await tab.page.getByRole("row", { name: /sprout.* 3 / }).waitFor();
    await tab.page.getByText("live", { exact: true }).waitFor();
    const { runs } = await ask<StudioRuns>(server, "runs");
    expect(runs.map(({ step }) => step)).toEqual([3]);
    await tab.close();
  }, 60_000);

  it("an open curve gets the points of the gap once, without a reload", async () => {
    const training = await server.train(2);
    const tab = await StudioTab.open(runAddress(server, training.modelId, "?table=nll"), {
      allowedFailures: [/./],
    });
    const steps = (): Promise<(string | null)[]> =>
      tab.page
        .locator('[data-metric="nll"] tbody tr')
        .evaluateAll((rows) => rows.map((row) => row.firstElementChild?.textContent ?? null));
    await expect.poll(steps).toEqual(["0", "1"]);
    await tab.page.evaluate("window.isSame = true");
    await server.kill();
    await tab.page
      .getByText(/reconnecting|offline/i)
      .first()
      .waitFor({ timeout: 5000 });
    expect(await tab.page.getByRole("button", { name: "Save now" }).isDisabled()).toBe(true);
    await server.start();
    for (let step = 0; step < 3; step++) await trainStep(training);
    await expect.poll(steps, { timeout: 20_000 }).toEqual(["0", "1", "2", "3", "4"]);
    expect(await tab.page.evaluate("window.isSame")).toBe(true);
    await tab.close();
  }, 60_000);

  it("a run that starts while a page is loading is not missed", async () => {
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const { page } = tab;
    // Before the stream is open, and while the list is on its way.
    for (const [late, name] of [
      ["events", "early"],
      ["runs", "between"],
    ] as const) {
      const held = await hold(page, late);
      await page.goto(`${server.url}/studio?q=tag:${name}`);
      await held.reached;
      if (late === "events") await page.getByText("No matches.").waitFor();
      await logLines(server, name, [{ kind: "open", name, tags: [name] }]);
      await using other = await StudioTab.open(`${server.url}/studio?q=tag:${name}`);
      await other.page.getByRole("link", { name }).waitFor();
      held.release();
      await page.getByRole("link", { name }).waitFor();
    }
  }, 60_000);

  it("rollouts that arrive while a run is loading are not missed", async () => {
    await logLines(server, "opened", [{ kind: "open", name: "opened" }]);
    await using other = await StudioTab.open(runAddress(server, "opened", "?tab=rollouts"));
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const held = await hold(tab.page, "runs/opened");
    await tab.page.goto(runAddress(server, "opened", "?tab=rollouts"));
    await held.reached;
    const rollouts = [{ group: 0, index: 0, reward: 1, text: "late" }];
    await logLines(server, "opened", [{ kind: "rollouts", step: 1, rollouts }]);
    await other.page.getByRole("button", { name: /late/ }).waitFor();
    held.release();
    await tab.page.getByRole("button", { name: /late/ }).waitFor();
  }, 60_000);

  it("hidden tabs hold no connection, so eight open ones all work", async () => {
    const first = await StudioTab.open(`${server.url}/studio`);
    const pages = [first.page];
    const show = async (page: Page, isShown: boolean): Promise<void> => {
      // A headless browser shows all of its tabs; other browsers set this for a hidden tab.
      const state = isShown ? "visible" : "hidden";
      await page.evaluate(
        `Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
         Object.defineProperty(document, "hidden", { value: ${!isShown}, configurable: true });
         document.dispatchEvent(new Event("visibilitychange"))`,
      );
    };
    for (let tab = 1; tab < 8; tab++) {
      await show(pages.at(-1)!, false);
      const page = await first.context.newPage();
      await page.goto(`${server.url}/studio`);
      pages.push(page);
    }
    for (const page of [pages.at(-1)!, pages[0]!, pages[4]!]) {
      await show(page, true);
      await page
        .getByRole("link", { name: /sprout/ })
        .first()
        .waitFor();
      await page.getByRole("link", { name: "Machine" }).click();
      await page.getByRole("heading", { name: "Memory" }).waitFor();
      await page.goBack();
      await show(page, false);
    }
    await first.close();
  }, 90_000);
});
