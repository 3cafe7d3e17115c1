import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { StudioServer, trainStep } from "./support/server.js";

let server: StudioServer;
beforeAll(async () => {
  server = await StudioServer.start();
}, 60_000);
afterAll(async () => {
  await closeBrowser();
  await server.close();
});

describe("the overview", () => {
  it("explains how to begin, and shows the run when it starts", async () => {
    const tab = await StudioTab.open(`${server.url}/studio`);
    await tab.page.getByText("No runs yet").waitFor();
    expect(await tab.page.locator("body").innerText()).toContain(server.url);
    expect(await tab.violations()).toEqual([]);
    const training = await server.train(1);
    await tab.page
      .getByRole("link", { name: /sprout/ })
      .first()
      .waitFor();
    await trainStep(training);
    await trainStep(training);
    await tab.page.getByRole("row", { name: /sprout.* 3 / }).waitFor();
    expect(await tab.violations()).toEqual([]);
    await tab.close();
  }, 60_000);

  it("the address alone restores filter and order in a fresh browser", async () => {
    await server.train(2);
    const tab = await StudioTab.open(`${server.url}/studio`);
    await tab.page
      .getByRole("link", { name: /sprout/ })
      .first()
      .waitFor();
    await tab.page.keyboard.press("/");
    await tab.page.keyboard.type("model:nothing");
    await tab.page.getByText("No matches.").waitFor();
    expect(await tab.page.getByRole("row", { name: /sprout/ }).count()).toBe(0);
    const address = tab.page.url();
    await tab.close();
    const fresh = await StudioTab.open(address);
    await expect.poll(() => fresh.page.getByRole("searchbox").inputValue()).toBe("model:nothing");
    await fresh.page.getByText("No matches.").waitFor();
    expect(await fresh.page.getByRole("row", { name: /sprout/ }).count()).toBe(0);
    await fresh.close();
  }, 60_000);
});
