import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab, textOf } from "./support/browser.js";
import { hold } from "./support/hold.js";
import { ask, logLines, runAddress } from "./support/log-lines.js";
import { planeOf } from "./support/plane.js";
import { StudioServer, trainStep } from "./support/server.js";
import type { TrainingClient } from "tinker-ts";
import type { StudioMachine } from "tinker-ts/wire/studio";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("navigation", () => {
  let server: StudioServer;
  let training: TrainingClient;

  beforeAll(async () => {
    server = await StudioServer.start();
    training = await server.train(4);
    await training.saveWeightsForSampler("end");
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  it("a click on a point leads to the data of that step", async () => {
    await using tab = await StudioTab.open(runAddress(server, training.modelId));
    const { page } = tab;
    await (await planeOf(page, "nll", 4)).click({ position: { x: 2, y: 60 } });
    await page.locator(".tokens").waitFor();
    expect(page.url()).toContain("tab=data");
    expect(await page.getByTestId("step").textContent()).toBe("0");
    await page.keyboard.press("]");
    await expect.poll(() => page.getByTestId("step").textContent()).toBe("1");
  });

  it("a chart without its points leads nowhere", async () => {
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const { page } = tab;
    const held = await hold(page, "series");
    await page.goto(runAddress(server, training.modelId));
    const address = page.url();
    await page.locator('[data-metric="nll"] .u-over').click();
    expect(page.url()).toBe(address);
    held.release();
    const plane = await planeOf(page, "nll", 4);
    const { width } = (await plane.boundingBox())!;
    await plane.click({ position: { x: width - 2, y: 60 } });
    await expect.poll(() => page.getByTestId("step").textContent()).toBe("3");
  });

  it("of a run with rollouts it leads to the rollouts of that step", async () => {
    await logLines(server, "with-rollouts", [
      { kind: "open", name: "with-rollouts" },
      ...[0, 1, 2, 3].map((step) => ({ kind: "metrics", step, metrics: { nll: 4 - step } })),
      { kind: "rollouts", step: 3, rollouts: [{ group: 0, index: 0, reward: 1, text: "three" }] },
    ]);
    await using tab = await StudioTab.open(runAddress(server, "with-rollouts"));
    const { page } = tab;
    const plane = await planeOf(page, "nll", 4);
    const { width } = (await plane.boundingBox())!;
    await plane.click({ position: { x: width - 2, y: 60 } });
    await page.getByRole("button", { name: /three/ }).waitFor();
    expect(page.url()).toContain("tab=rollouts");
    expect(await page.getByTestId("step").textContent()).toBe("3");
  });

  it("saves a run as one file of text and pictures only", async () => {
    const attack = "<script>alert(1)</script>";
    await logLines(server, "to-export", [
      { kind: "open", name: attack, config: { [attack]: attack } },
      ...[3, 2, 1].map((nll, step) => ({ kind: "metrics", step, metrics: { nll } })),
    ]);
    await using tab = await StudioTab.open(runAddress(server, "to-export", "?tab=files"));
    const { page } = tab;
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as HTML" }).click(),
    ]);
    const html = await textOf(file);
    expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(html).not.toContain("<script");
    expect(html).toMatch(/<path class="line" d="M[\d.]+ [\d.]+L/);
    // It opens without a server and shows its curve.
    await page.goto("about:blank");
    await page.setContent(html);
    expect(await page.locator("svg path").count()).toBeGreaterThan(0);
  });

  it.runIf(isFull)(
    "the view of a run does not depend on other runs",
    async () => {
      for (const [run, factor] of [
        ["alone", 1],
        ["beside", 3],
      ] as const) {
        await logLines(server, run, [
          { kind: "open", name: run },
          ...Array.from({ length: 3000 }, (_, step) => ({
            kind: "metrics",
            step: step * factor,
            metrics: { nll: Math.sin(step) },
          })),
        ]);
      }
      const rows = async (query: string): Promise<string[]> => {
        await using tab = await StudioTab.open(`${server.url}/studio/compare?${query}&table=nll`);
        const all = tab.page.locator('[data-metric="nll"] tbody tr');
        await all.first().waitFor();
        return (await all.allTextContents())
          .filter((text) => !text.startsWith("beside"))
          .map((text) => text.replace(/^alone/, ""));
      };
      expect(await rows("runs=alone,beside")).toEqual(await rows("runs=alone"));
    },
    60_000,
  );

  it.runIf(isFull)(
    "a rollout of 50,000 tokens opens in pages, with text and raw record",
    async () => {
      const tokens = Array.from({ length: 50_000 }, (_, index) => 300 + (index % 1000));
      await logLines(server, "long", [
        { kind: "open", name: "long", models: [training.modelId] },
        {
          kind: "rollouts",
          step: 1,
          rollouts: [
            {
              group: 0,
              index: 0,
              reward: 1,
              tokens,
              mask: tokens.map(() => 1),
              model: training.modelId,
            },
          ],
        },
      ]);
      await using tab = await StudioTab.open(runAddress(server, "long", "?tab=rollouts"));
      const { page } = tab;
      await page.locator(".exhibit-row").first().click();
      await page.getByText("tokens 0–3,999 of 50,000").waitFor();
      await page.getByRole("button", { name: "▸", exact: true }).last().click();
      await page.getByText("tokens 4,000–7,999 of 50,000").waitFor();
      for (const form of ["text", "raw"]) {
        await page.getByRole("button", { name: form, exact: true }).click();
        await page.getByRole("button", { name: form, exact: true, pressed: true }).waitFor();
        await page.locator(".plain-text").waitFor();
      }
      expect(await page.locator(".plain-text").textContent()).toMatch(/^{/);
    },
    60_000,
  );

  it.runIf(isFull)("chatting and curves continue while a model trains", async () => {
    const end = new AbortController();
    const model = await server.train(1); // one without a logger: its steps are reported for its own run
    const loop = (async () => {
      while (!end.signal.aborted) await trainStep(model);
    })();
    try {
      await using tab = await StudioTab.open(
        `${server.url}/studio/playground?columns=tinker-ts/sprout&max=20`,
      );
      const field = tab.page.getByRole("textbox", { name: "Prompt", exact: true });
      await field.fill("Hello.");
      await field.press("Control+Enter");
      await tab.page.locator(".said").first().waitFor();
      const run = await tab.context.newPage();
      await run.goto(runAddress(server, model.modelId));
      // Not all of the header: "changed 2 s ago" is another text every second.
      const step = (): Promise<string | null> =>
        run
          .locator(".run-header .tabular")
          .getByText(/^step \d/)
          .textContent();
      const before = await step();
      await expect.poll(step).not.toBe(before);
    } finally {
      end.abort();
      await loop;
    }
  });

  it("a waiting answer shows its reason", async () => {
    const end = new AbortController();
    const others = Array.from({ length: 80 }, () =>
      fetch(`${server.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: "tinker-ts/sprout",
          prompt: "Once",
          max_tokens: 900,
          n: 8,
          stream: true,
          ignore_eos: true,
        }),
        signal: end.signal,
      }).catch(() => undefined),
    );
    try {
      await expect
        .poll(async () => (await ask<StudioMachine>(server, "machine")).samples.waiting, {
          timeout: 10_000,
        })
        .toBeGreaterThan(0);
      await using tab = await StudioTab.open(
        `${server.url}/studio/playground?columns=tinker-ts/sprout&max=20`,
        { allowedFailures: [/aborted/i] },
      );
      const field = tab.page.getByRole("textbox", { name: "Prompt", exact: true });
      await field.fill("Hello.");
      await field.press("Control+Enter");
      await tab.page.getByText(/^waiting .* · .*(queued|training|wait|turn)/).waitFor();
    } finally {
      end.abort();
      await Promise.all(others);
    }
  }, 60_000);
});
