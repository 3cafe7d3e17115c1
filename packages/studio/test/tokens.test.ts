import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { ask, logLines, runAddress } from "./support/log-lines.js";
import { StudioServer } from "./support/server.js";
import { Datum, ModelInput, type Tokenizer } from "tinker-ts";
import type { StudioRuns } from "tinker-ts/wire/studio";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("training data", () => {
  let server: StudioServer;
  let tokenizer: Tokenizer;
  let model = "";
  const sentence = "Grüße 🌱 und 木, the cat sat.";

  beforeAll(async () => {
    server = await StudioServer.start();
    const service = server.client();
    const training = await service.createLoraTrainingClient({
      baseModel: "tinker-ts/sprout",
      rank: 4,
    });
    tokenizer = await training.getTokenizer();
    const ids = tokenizer.encode(sentence);
    const weights = Array.from(
      { length: ids.length - 1 },
      (_, index) => [0, 1, 0.5, -1][index % 4]!,
    );
    const datum = new Datum({
      modelInput: ModelInput.fromInts(ids.slice(0, -1)),
      lossFnInputs: {
        target_tokens: ids.slice(1),
        weights: weights,
      },
    });
    await training.trainStep([datum], "cross_entropy", { adamParams: { learningRate: 1e-4 } });
    model = training.modelId;
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  const runOf = async (): Promise<string> =>
    (await ask<StudioRuns>(server, "runs")).runs.find(({ models }) => models.includes(model))!.id;

  it("shows whole characters, the trained share, and four looks of weights", async () => {
    await using tab = await StudioTab.open(runAddress(server, await runOf(), "?tab=data"));
    const { page } = tab;
    const tokens = page.locator(".tokens");
    await tokens.waitFor();
    expect(await tokens.textContent()).toBe(sentence);
    const ids = tokenizer.encode(sentence);
    const trained = ids.slice(1).filter((_, index) => index % 4 !== 0).length;
    await page.getByText(`${trained} of ${ids.length} tokens trained`).waitFor();
    const looks = await page.locator(".legend .token").evaluateAll((all) =>
      all.map((one) => {
        const { backgroundColor, borderBottomStyle, color } = getComputedStyle(one);
        return [backgroundColor, borderBottomStyle, color].join();
      }),
    );
    expect(new Set(looks).size).toBe(looks.length);
    expect(looks.length).toBeGreaterThanOrEqual(4);
    expect(await tab.violations()).toEqual([]);
  });

  it("colours by logprob too; keys and mouse select a token", async () => {
    await using tab = await StudioTab.open(runAddress(server, await runOf(), "?tab=data"));
    const { page } = tab;
    const tokens = page.locator(".tokens");
    await tokens.focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    const ids = tokenizer.encode(sentence);
    const read = (): Promise<string | null> => tokens.getAttribute("aria-valuetext");
    await expect.poll(read).toContain(`id ${ids[1]}`);
    const text = await read();
    expect(text).toMatch(/weight 0,/);
    expect(text).toMatch(/logprob −/);
    const box = (await tokens.boundingBox())!;
    await page.mouse.move(box.x + 18, box.y + 20);
    await expect.poll(() => page.locator("dl.facts").textContent()).toContain(`id${ids[0]}`);
    await page.getByLabel("colour by").selectOption("logprob");
    await page.getByText("logprob above −0.1").or(page.getByText("below −3")).first().waitFor();
    expect(page.url()).toContain("colour=logprob");
    await page.getByRole("button", { name: "raw" }).click();
    await page.locator(".plain-text").waitFor();
  });

  it("a key pressed as soon as the tokens appear selects one", async () => {
    await using tab = await StudioTab.open(runAddress(server, await runOf(), "?tab=config"));
    const { page } = tab;
    await page.getByText("base_model").waitFor();
    await page.evaluate(`new MutationObserver((_, observer) => {
      const tokens = document.querySelector(".tokens");
      if (!tokens) return;
      observer.disconnect();
      tokens.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
    }).observe(document.body, { childList: true, subtree: true })`);
    await page.getByRole("link", { name: "Data" }).click();
    await page.locator(".tokens").waitFor();
    // What runs behind the next picture has run.
    await page.evaluate(
      "new Promise((seen) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(seen))))",
    );
    const [id] = tokenizer.encode(sentence);
    expect(await page.locator(".facts").textContent()).toContain(`id${id}`);
    // The selection stays when the colours change.
    await page.getByLabel("colour by").selectOption("logprob");
    await page.getByText("logprob above −0.1").or(page.getByText("below −3")).first().waitFor();
    expect(await page.locator(".facts").textContent()).toContain(`id${id}`);
  });

  it("advantage × ratio and trainer − sampler have colours, numbers and patterns", async () => {
    const service = server.client();
    const policy = await service.createLoraTrainingClient({
      baseModel: "tinker-ts/sprout",
      rank: 4,
    });
    const ids = tokenizer.encode(sentence);
    const targets = ids.slice(1);
    const sampled = targets.map((_, index) => -1 - (index % 3));
    const advantages = targets.map((_, index) => (index % 2 === 0 ? 2 : -2));
    const datum = new Datum({
      modelInput: ModelInput.fromInts(ids.slice(0, -1)),
      lossFnInputs: { target_tokens: targets, logprobs: sampled, advantages },
    });
    const { forwardBackward } = await policy.trainStep([datum], "importance_sampling", {
      adamParams: { learningRate: 1e-4 },
    });
    const trained = [...forwardBackward.lossFnOutputs[0]!["logprobs"]!.data].map(Number);
    await using tab = await StudioTab.open(
      runAddress(server, policy.modelId, "?tab=data&colour=advantage"),
    );
    const { page } = tab;
    const tokens = page.locator(".tokens");
    await tokens.focus();
    await page.keyboard.press("Home");
    for (const place of [0, 1, 2]) {
      await page.keyboard.press("ArrowRight");
      await expect
        .poll(() => tokens.getAttribute("aria-valuetext"))
        .toContain(`id ${ids[place + 1]}`);
      const facts = (await tokens.getAttribute("aria-valuetext")) ?? "";
      const value = (name: string): number =>
        Number(new RegExp(`${name} (−?[\\d.e−]+)`).exec(facts)?.[1]?.replaceAll("−", "-"));
      expect(value("logprob")).toBeCloseTo(trained[place]!, 3);
      expect(value("sampler")).toBeCloseTo(sampled[place]!, 3);
      const ratio = Math.exp(trained[place]! - sampled[place]!);
      expect(value("ratio") / ratio).toBeCloseTo(1, 2);
      expect(value("advantage")).toBe(advantages[place]);
    }
    for (const [colour, legend] of [
      ["advantage", /[+−] /],
      ["difference", /[+−] /],
    ] as const) {
      await page.getByLabel("colour by").selectOption(colour);
      await expect
        .poll(() => page.getByRole("list", { name: "Legend" }).innerText())
        .toMatch(legend);
      // Without colours they still look different.
      const looks = await page.locator(".legend .token:not(.none)").evaluateAll((all) =>
        all.map((one) => {
          const { textDecorationLine, textDecorationStyle, borderBottomStyle, borderBottomWidth } =
            getComputedStyle(one);
          const { backgroundImage, fontWeight, borderTopStyle } = getComputedStyle(one);
          return [
            textDecorationLine,
            textDecorationStyle,
            borderBottomStyle,
            borderBottomWidth,
            borderTopStyle,
            backgroundImage,
            fontWeight,
          ].join();
        }),
      );
      expect([colour, new Set(looks).size]).toEqual([colour, looks.length]);
    }
    expect(await tab.violations()).toEqual([]);
  });

  it("warns when a role tag is trained", async () => {
    const service = server.client();
    const chat = await service.createLoraTrainingClient({ baseModel: "tinker-ts/sprout", rank: 4 });
    const { tokens: all, assistantMask } = await tokenizer.encodeChat([
      { role: "user", content: "Hello." },
      { role: "assistant", content: "Good day." },
    ]);
    const tokens = [...all];
    const mask = [...assistantMask!];
    const datum = (weights: readonly number[]): Datum =>
      new Datum({
        modelInput: ModelInput.fromInts(tokens.slice(0, -1)),
        lossFnInputs: { target_tokens: tokens.slice(1), weights: weights.slice(1) },
      });
    const step = (weights: readonly number[]) =>
      chat.trainStep([datum(weights)], "cross_entropy", { adamParams: { learningRate: 1e-4 } });
    await step(mask); // the answer alone
    await step(tokens.map(() => 1)); // everything, role tags too
    await using tab = await StudioTab.open(runAddress(server, chat.modelId, "?tab=data&step=0"));
    const { page } = tab;
    await page.locator(".tokens").waitFor();
    const share = mask.slice(1).filter((one) => one > 0).length;
    await page.getByText(`${share} of ${tokens.length} tokens trained`).waitFor();
    expect(await page.getByText(/special token .* is trained/).count()).toBe(0);
    await page.keyboard.press("]");
    await page
      .getByText(/special token .* is trained/)
      .first()
      .waitFor();
  });

  it("rollouts by step and group, filtered by reward, equal the logged ones", async () => {
    const ids = [...tokenizer.encode("17 and 23 are 40.")];
    const rollouts = () =>
      [0, 1].flatMap((group) =>
        [0, 1, 2].map((index) => ({
          group,
          index,
          reward: group === 0 ? (index === 0 ? 1 : 0) : 0,
          advantage: group === 0 ? (index === 0 ? 0.5 : -0.25) : 0,
          stop: "stop",
          tokens: ids,
          mask: ids.map((_, place) => (place < 3 ? 0 : 1)),
          logprobs: ids.map((_, place) => (place < 3 ? 0 : -0.5)),
          model,
        })),
      );
    await logLines(server, "rl", [
      { kind: "open", name: "rl" },
      { kind: "rollouts", step: 2, rollouts: rollouts() },
      { kind: "rollouts", step: 7, rollouts: rollouts() },
      { kind: "metrics", step: 7, metrics: { "env/all/reward/total": 0.17 } },
    ]);
    await using tab = await StudioTab.open(runAddress(server, "rl", "?tab=rollouts"));
    const { page } = tab;
    const rows = page.locator(".exhibit-row");
    await expect.poll(() => rows.count()).toBe(6);
    expect(await page.getByTestId("step").textContent()).toBe("7");
    await page.getByText("others were not stored").waitFor();
    await page.keyboard.press("[");
    await expect.poll(() => page.getByTestId("step").textContent()).toBe("2");
    await page.keyboard.press("]");
    await expect.poll(() => page.getByTestId("step").textContent()).toBe("7");
    const groups = page.locator(".group-line");
    await expect.poll(() => groups.count()).toBe(2);
    expect(await groups.nth(0).textContent()).toContain("3 · mean 0.333 ± 0.471");
    expect(await groups.nth(0).getByText("no gradient").count()).toBe(0);
    expect(await groups.nth(1).getByText("no gradient").count()).toBe(1);
    await page.getByRole("button", { name: /1 rollout of reward 1$/ }).click();
    await expect.poll(() => rows.count()).toBe(1);
    expect(await rows.first().textContent()).toContain("reward 1 A +0.500");
    expect(await rows.first().textContent()).toContain(`${ids.length} tokens · stop`);
    await page.keyboard.press("j");
    await page.locator(".tokens").waitFor();
    expect(await page.locator(".tokens").textContent()).toBe("17 and 23 are 40.");
    expect(await tab.violations()).toEqual([]);
    await page.keyboard.press("Escape");
    await page.locator(".tokens").waitFor({ state: "detached" });
  });
});
