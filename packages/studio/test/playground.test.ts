import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { hold } from "./support/hold.js";
import { ask } from "./support/log-lines.js";
import { StudioServer, trainStep } from "./support/server.js";
import type { ServiceClient, TrainingClient } from "tinker-ts";
import type { StudioCheckpoints, StudioMachine } from "tinker-ts/wire/studio";

const sproutFolder = path.resolve(import.meta.dirname, "../../engine/sprout");
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
    await page.locator(".turn:last-child .question", { hasText: prompt }).first().waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    return page.locator(".turn:last-child .said").allTextContents();
  };

  it("one prompt goes to base and checkpoint; each answer names its weights, repeats with a seed, and equals a direct sample", async () => {
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

  it("the chosen token has the same logprob among its alternatives", async () => {
    await using tab = await StudioTab.open(address("&temp=0&max=6"));
    await answers(tab, "Hello.");
    const { page } = tab;
    await page.getByRole("button", { name: "tokens", exact: true }).first().click();
    await page.locator(".tokens").focus();
    await page.keyboard.press("Home");
    const facts = (await page.locator("dl.facts").textContent()) ?? "";
    const taken = (await page.locator(".alternatives .taken").first().textContent()) ?? "";
    const logprob = /sampler(−?[\d.]+(?:e−?\d+)?)/.exec(facts)?.[1];
    expect(logprob).toBeDefined();
    expect(taken).toContain(logprob!);
  });

  it("a prompt sent before the columns are loaded stays in its field", async () => {
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const { page } = tab;
    const held = await hold(page, "checkpoints");
    await page.goto(`${server.url}/studio/playground?max=4`);
    const field = page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill("Hello.");
    await field.press("Control+Enter");
    expect(await field.inputValue()).toBe("Hello.");
    held.release();
    await page.locator(".column").first().waitFor();
    await field.press("Control+Enter");
    await page.locator(".question", { hasText: "Hello." }).first().waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
  });

  it("answers are streamed", async () => {
    await using tab = await StudioTab.open(address("&max=200&temp=1"));
    const { page } = tab;
    const field = page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill("Tell a long story.");
    await field.press("Control+Enter");
    const said = page.locator(".said").first();
    const seen = new Set<number>();
    await expect
      .poll(
        async () => {
          seen.add(((await said.textContent()) ?? "").length);
          return seen.size;
        },
        { interval: 20 },
      )
      .toBeGreaterThan(3);
    await page
      .getByRole("button", { name: "■ Stop" })
      .click({ timeout: 2000 })
      .catch(() => null);
  });

  it("a model without a chat template continues the text, with a note", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "tinker-ts-plain-"));
    cpSync(sproutFolder, folder, { recursive: true });
    for (const name of ["chat_template.jinja", "chat_template.json"])
      rmSync(path.join(folder, name), { force: true });
    const configFile = path.join(folder, "tokenizer_config.json");
    const config = JSON.parse(readFileSync(configFile, "utf8")) as Record<string, unknown>;
    delete config["chat_template"];
    writeFileSync(configFile, JSON.stringify(config));
    const plain = await StudioServer.start("--model", `plain=${folder}`);
    try {
      await using tab = await StudioTab.open(
        `${plain.url}/studio/playground?columns=plain&max=5&temp=0`,
        { allowedFailures: [/status of 400/] },
      );
      const [said = ""] = await answers(tab, "The cat sat on");
      expect(said).not.toBe("");
      await tab.page.getByText("This model has no chat template").waitFor();
      const response = await fetch(`${plain.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          model: "plain",
          prompt: "The cat sat on",
          max_tokens: 5,
          temperature: 0,
        }),
      });
      const direct = (await response.json()) as { choices: { text: string }[] };
      expect(said).toBe(direct.choices[0]!.text);
    } finally {
      await plain.close();
      rmSync(folder, { recursive: true, force: true });
    }
  }, 60_000);

  it("saves prompts and views by name on the server, not in the browser", async () => {
    await using tab = await StudioTab.open(address("&temp=0&max=4"));
    const { page } = tab;
    const field = page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill("A prompt, with <b>signs</b> & more?");
    await page.getByRole("textbox", { name: "System prompt" }).fill("Be brief.");
    await page.getByRole("button", { name: "Save prompt" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill("signs");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.goto(`${server.url}/studio/machine`);
    await page.getByRole("heading", { name: "Memory" }).waitFor();
    await page.keyboard.press("v");
    await dialog.getByRole("textbox").fill("the machine");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("link", { name: "the machine" }).waitFor();
    expect(await tab.violations()).toEqual([]);
    expect(await page.evaluate("Object.keys(localStorage)")).toEqual([]);
    await using fresh = await StudioTab.open(address());
    await fresh.page.getByLabel("Saved prompts").selectOption({ label: "signs" });
    expect(
      await fresh.page.getByRole("textbox", { name: "Prompt", exact: true }).inputValue(),
    ).toBe("A prompt, with <b>signs</b> & more?");
    expect(await fresh.page.getByRole("textbox", { name: "System prompt" }).inputValue()).toBe(
      "Be brief.",
    );
    await fresh.page.getByRole("button", { name: "Views" }).click();
    await fresh.page.getByRole("dialog").getByRole("link", { name: "the machine" }).click();
    await fresh.page.getByRole("heading", { name: "Memory" }).waitFor();
    await fresh.page.getByRole("button", { name: "Views" }).click();
    await fresh.page.getByRole("button", { name: "Remove the machine" }).click();
    await fresh.page
      .getByRole("dialog")
      .getByRole("link", { name: "the machine" })
      .waitFor({ state: "detached" });
  });

  it("is embedded as one chart in allowed pages only", async () => {
    const page = `<!doctype html><title>notebook</title><iframe width=600 height=300 src="URL"></iframe>`;
    const hosts = ["allowed", "other"].map(() =>
      createServer((_, response) => {
        response.setHeader("content-type", "text/html");
        response.end(page.replace("URL", chart));
      }),
    );
    const ports: number[] = [];
    for (const host of hosts) {
      await new Promise<void>((resolve) => {
        host.listen(0, "127.0.0.1", resolve);
      });
      ports.push((host.address() as AddressInfo).port);
    }
    const own = await StudioServer.start("--cors-origin", `http://127.0.0.1:${ports[0]}`);
    const model = await own.train(3);
    const chart = `${own.url}/studio/embed?run=${encodeURIComponent(model.modelId)}&metric=nll`;
    try {
      const [shown, refused] = [
        await StudioTab.open(`http://127.0.0.1:${ports[0]}/`, { allowedFailures: [/./] }),
        await StudioTab.open(`http://127.0.0.1:${ports[1]}/`, { allowedFailures: [/./] }),
      ];
      await shown.page.frameLocator("iframe").locator('[data-metric="nll"] canvas').waitFor();
      expect(await refused.page.frameLocator("iframe").locator("canvas").count()).toBe(0);
      // The rest of the studio cannot be embedded at all.
      await shown.page.locator("iframe").evaluate((frame, url) => {
        (frame as unknown as { src: string }).src = url;
      }, `${own.url}/studio`);
      await shown.page.frameLocator("iframe").locator("canvas").waitFor({ state: "detached" });
      expect(await shown.page.frameLocator("iframe").locator("nav").count()).toBe(0);
      await Promise.all([shown.context.close(), refused.context.close()]);
    } finally {
      for (const host of hosts) host.close();
      await own.close();
    }
  }, 60_000);

  it.runIf(isFull)("system prompt, several answers, stop and completion of a text", async () => {
    await using tab = await StudioTab.open(address("&n=2&max=8&mode=complete"));
    expect(await answers(tab, "The cat sat on")).toHaveLength(4);
    await tab.page.goto(address("&max=40&temp=0&stop=e"));
    await tab.page.getByRole("textbox", { name: "System prompt" }).fill("Be brief.");
    for (const text of await answers(tab, "Hello.")) expect(text).not.toContain("e");
  });

  it("stopping, and leaving the page, end the generation on the server", async () => {
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

  it("publishes, expires and deletes a checkpoint, and asks for its name", async () => {
    const { path: doomed } = await training.saveWeightsForSampler("to-delete");
    await using tab = await StudioTab.open(`${server.url}/studio/checkpoints`);
    const { page } = tab;
    const row = page.locator(`[data-path="${doomed}"]`);
    await row.getByRole("button", { name: "publish" }).click();
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("button", { name: "Publish" }).isDisabled()).toBe(true);
    await dialog.getByRole("textbox").fill("to-delete");
    await dialog.getByRole("button", { name: "Publish" }).click();
    await row.getByRole("button", { name: "unpublish" }).click();
    await dialog.getByRole("button", { name: "Unpublish" }).click();
    await row.getByRole("button", { name: "publish", exact: true }).waitFor();
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
    // Another client samples from it; the dialog lists it as a user.
    const sampling = await service.createSamplingClient({ modelPath: doomed });
    await sampling.sample({ prompt: [5, 8], samplingParams: { maxTokens: 1 } });
    await page.reload();
    await row.getByRole("button", { name: "delete" }).click();
    await dialog.getByText(/In use by/).waitFor();
    const [used] = (await ask<StudioCheckpoints>(server, "checkpoints")).checkpoints.filter(
      (one) => one.path === doomed,
    );
    expect(used!.usedBy.length).toBeGreaterThan(0);
    for (const user of used!.usedBy) await dialog.getByText(user).waitFor();
    await dialog.getByRole("textbox").fill("to-delete");
    await dialog.getByRole("button", { name: "Delete" }).click();
    await row.waitFor({ state: "detached" });
    const left = await ask<StudioCheckpoints>(server, "checkpoints");
    expect(left.checkpoints.map((one) => one.path)).not.toContain(doomed);
    const audit = await fetch(`${server.url}/api/v1/audit`, {
      headers: { "x-api-key": "tml-studio" },
    });
    const { entries } = (await audit.json()) as {
      entries: { event: string; tinker_path: string | null; purpose: string | null }[];
    };
    expect(
      entries
        .filter((entry) => entry.tinker_path === doomed && entry.purpose === "studio")
        .map(({ event }) => event),
    ).toEqual([
      "checkpoint.published",
      "checkpoint.unpublished",
      "checkpoint.ttl_changed",
      "checkpoint.deleted",
    ]);
  });
});

describe.runIf(isFull)("the playground with a reasoning model", () => {
  const root = mkdtempSync(path.join(tmpdir(), "tinker-ts-thinker-"));
  let server: StudioServer;

  beforeAll(async () => {
    cpSync(sproutFolder, root, { recursive: true });
    const template =
      "{% for m in messages %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}<think>\n{% endif %}";
    writeFileSync(path.join(root, "chat_template.jinja"), `${template}{# <think></think> #}`);
    server = await StudioServer.start("--model", `thinker=${root}`);
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
    rmSync(root, { recursive: true, force: true });
  });

  it("shows its mode, and a missing answer when reasoning reached the limit", async () => {
    const address = `${server.url}/studio/playground?columns=thinker&seed=7&max=6&temp=0.8`;
    await using tab = await StudioTab.open(address);
    await tab.page.getByText("Thinks before it answers.").waitFor();
    const field = tab.page.getByRole("textbox", { name: "Prompt", exact: true });
    await field.fill("Hello.");
    await field.press("Control+Enter");
    await tab.page.getByText("reasoning reached the token limit").waitFor();
    expect(await tab.page.locator(".answer p.tabular").textContent()).toMatch(/ · thinks · length/);
  });
});
