import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { ask } from "./support/log-lines.js";
import { StudioServer, trainStep } from "./support/server.js";
import type { ServiceClient, TrainingClient } from "tinker-ts";
import type { StudioCheckpoints, StudioMachine } from "tinker-ts/wire/studio";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("the playground", () => {
  let server: StudioServer;
  let service: ServiceClient;
  let training: TrainingClient;
  let trained = "";
  const base = "tinker-ts/sprout";

  beforeAll(async () => {
    server = await StudioServer.start();
    service = server.client();
    training = await service.createLoraTrainingClient({ baseModel: base, rank: 4 });
    for (let step = 0; step < 3; step++) await trainStep(training);
    ({ path: trained } = await training.saveWeightsForSampler("trained"));
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  const address = (query = ""): string =>
    `${server.url}/studio/playground?columns=${base},${trained}${query}`;

  /** Types a prompt, waits for the answers of all columns, and returns their texts. */
  const answers = async (tab: StudioTab, prompt: string): Promise<string[]> => {
    const { page } = tab;
    const field = page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill(prompt);
    await field.press("Control+Enter");
    await page.getByRole("button", { name: "Send" }).waitFor();
    return page.locator(".turn:last-child .said").allTextContents();
  };

  it("46, 47, 49: one prompt for base and checkpoint; each answer names its weights, repeats with a seed, and is what a direct sample is", async () => {
    await using tab = await StudioTab.open(address("&seed=7&max=12&temp=0.8"));
    const [first = "", second = ""] = await answers(tab, "Hello.");
    expect(first).not.toBe("");
    expect(await tab.page.locator(".from").allTextContents()).toEqual([base, trained]);
    expect(await tab.page.locator(".answer p").first().textContent()).toMatch(
      /\d+ tokens · .*tok\/s · logprob −/,
    );
    await tab.page.getByRole("button", { name: "New conversation" }).click();
    expect(await answers(tab, "Hello.")).toEqual([first, second]);
    // The same question, asked of the base model without the studio.
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: base,
        messages: [{ role: "user", content: "Hello." }],
        seed: 7,
        max_tokens: 12,
        temperature: 0.8,
      }),
    });
    const direct = (await response.json()) as { choices: { message: { content: string } }[] };
    expect(first).toBe(direct.choices[0]!.message.content);
    expect(await tab.violations()).toEqual([]);
  });

  it("50: the chosen token has the same logprob among its alternatives", async () => {
    await using tab = await StudioTab.open(address("&temp=0&max=6"));
    await answers(tab, "Hello.");
    const { page } = tab;
    await page.getByRole("button", { name: "tokens", exact: true }).first().click();
    const tokens = page.locator(".tokens");
    await tokens.focus();
    await page.keyboard.press("Home");
    const facts = (await page.locator("dl.facts").textContent()) ?? "";
    const taken = (await page.locator(".alternatives .taken").first().textContent()) ?? "";
    const logprob = /sampler(−?[\d.e−]+)/.exec(facts)?.[1];
    expect(logprob).toBeDefined();
    expect(taken).toContain(logprob!);
  });

  it.runIf(isFull)(
    "48: system prompt, several answers, stop and going on from a text",
    async () => {
      await using tab = await StudioTab.open(address("&n=2&max=8&mode=complete"));
      expect(await answers(tab, "The cat sat on")).toHaveLength(4);
      await tab.page.goto(address("&max=40&temp=0&stop=e"));
      await tab.page.getByRole("textbox", { name: "System prompt" }).fill("Be brief.");
      for (const text of await answers(tab, "Hello.")) expect(text).not.toContain("e");
    },
  );

  it("49: stopping, and leaving the page, end the generation on the server", async () => {
    const running = async (): Promise<number> =>
      (await ask<StudioMachine>(server, "machine")).samples.running;
    await using tab = await StudioTab.open(address("&max=900&temp=1&n=8"), {
      allowedFailures: [/aborted/i],
    });
    const { page } = tab;
    const field = page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill("Tell a very long story.");
    await field.press("Control+Enter");
    await page.getByRole("button", { name: "■ Stop" }).click();
    await page.getByText("Stopped.").first().waitFor();
    await expect.poll(running).toBe(0);
    await page.getByRole("button", { name: "New conversation" }).click();
    await field.fill("Tell another very long story.");
    await field.press("Control+Enter");
    await page.getByRole("button", { name: "■ Stop" }).waitFor();
    await page.goto(`${server.url}/studio`);
    await expect.poll(running).toBe(0);
  });

  it("52: publishes, limits, and deletes a checkpoint, and asks for its name", async () => {
    const { path } = await training.saveWeightsForSampler("to-delete");
    await using tab = await StudioTab.open(`${server.url}/studio/checkpoints`);
    const { page } = tab;
    const row = page.locator(`[data-path="${path}"]`);
    await row.getByRole("button", { name: "publish" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("button", { name: "Publish" }).isDisabled()).toBe(true);
    await dialog.getByRole("textbox").fill("to-delete");
    await dialog.getByRole("button", { name: "Publish" }).click();
    await row.getByRole("button", { name: "unpublish" }).waitFor();
    await row.getByRole("button", { name: "ttl" }).click();
    await dialog.getByRole("spinbutton").fill("2");
    await dialog.getByRole("button", { name: "Set" }).click();
    await row.getByText("in 48 h").or(row.getByText("in 2 d")).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      (async () => {
        await row.getByRole("button", { name: "download" }).click();
        await dialog.getByRole("button", { name: /PEFT archive/ }).click();
      })(),
    ]);
    expect((await file.path()).length).toBeGreaterThan(0);
    await page.keyboard.press("Escape");
    await row.getByRole("button", { name: "delete" }).click();
    await dialog.getByRole("textbox").fill("to-delete");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
    const left = await ask<StudioCheckpoints>(server, "checkpoints");
    expect(left.checkpoints.map((one) => one.path)).not.toContain(path);
  });
});
