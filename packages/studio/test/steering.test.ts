import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TrainingClient } from "tinker-ts";
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

const open = (training: TrainingClient): Promise<StudioTab> =>
  StudioTab.open(`${server.url}/studio/runs/${encodeURIComponent(training.modelId)}`);

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("a run", () => {
  it("a new name and tags reach a second page without a reload", async () => {
    const training = await server.train(1);
    const [tab, other] = await Promise.all([
      open(training),
      StudioTab.open(`${server.url}/studio`),
    ]);
    await tab.page.getByRole("button", { name: "Rename" }).click();
    await tab.page.getByRole("textbox", { name: "Rename" }).fill("garden, lr 1e-3");
    await tab.page.getByRole("button", { name: "Save", exact: true }).click();
    await other.page.getByText("garden, lr 1e-3").first().waitFor();
    await tab.page.getByRole("button", { name: "add tags" }).click();
    await tab.page.getByRole("dialog").getByRole("textbox").fill("sft, first");
    await tab.page.getByRole("button", { name: "Save", exact: true }).click();
    await other.page.getByText("first", { exact: true }).first().waitFor();
    await Promise.all([tab.close(), other.close()]);
  }, 60_000);

  it("pauses after the running request; the client waits, also over a restart, and continues", async () => {
    const training = await server.train(1);
    const tab = await open(training);
    await tab.page.getByRole("button", { name: /Pause/ }).click();
    await tab.page.getByRole("button", { name: /Resume/ }).waitFor();
    let isDone = false;
    const step = trainStep(training).then(() => {
      isDone = true;
    });
    await server.kill();
    await server.start();
    await expect
      .poll(() => tab.page.getByRole("button", { name: /Resume/ }).isEnabled(), { timeout: 15_000 })
      .toBe(true);
    expect(isDone).toBe(false);
    await tab.page.getByRole("button", { name: /Resume/ }).click();
    await step;
    // The connection was lost on purpose.
    tab.complaints.length = 0;
    await tab.close();
  }, 60_000);

  it("is stopped without saving only after confirmation, and the loop's error has the reason", async () => {
    const training = await server.train(1);
    const tab = await open(training);
    await tab.page.getByRole("button", { name: /Stop/ }).click();
    await tab.page.getByRole("button", { name: /Stop without saving/ }).click();
    await tab.page.getByRole("button", { name: "Stop without saving", exact: true }).click();
    await tab.page
      .getByText(/stopped/)
      .first()
      .waitFor();
    await expect(trainStep(training)).rejects.toThrow(/studio/);
    await tab.close();
  }, 60_000);

  it("saves a loadable checkpoint at once, without affecting training", async () => {
    const [plain, saved] = [await server.train(1), await server.train(1)];
    const tab = await open(saved);
    await tab.page.getByRole("button", { name: "Save now" }).click();
    const said = await tab.page.getByText(/Saved tinker:\/\//).innerText();
    const path = /tinker:\/\/\S+/.exec(said)![0];
    const logprobs: number[][] = [];
    for (const training of [plain, saved]) {
      await trainStep(training);
      const sampling = await training.saveWeightsAndGetSamplingClient();
      logprobs.push([...(await sampling.computeLogprobs([5, 8, 13, 21]))] as number[]);
    }
    expect(logprobs[1]).toEqual(logprobs[0]);
    const loaded = await server.client().createTrainingClientFromState(path);
    await trainStep(loaded);
    await tab.close();
  }, 60_000);
});
