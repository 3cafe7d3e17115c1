import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RunLog } from "tinker-ts/run-log";
import type { StudioRunDetail, StudioRuns } from "tinker-ts/wire/studio";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { ask, logLines, runAddress } from "./support/log-lines.js";
import { StudioServer, trainStep } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const cli = path.resolve(import.meta.dirname, "../../cli/bin/tinker-ts.js");

describe.runIf(isFull)("runs", () => {
  let server: StudioServer;
  beforeAll(async () => {
    server = await StudioServer.start();
  }, 60_000);
  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  it("after the quickstart its run is shown with its curve, its first and last loss, and three next steps", async () => {
    // As `npm start` does: the program runs the engine itself, and the studio comes afterwards.
    await server.kill();
    const quickstart = spawn(process.execPath, [cli, "quickstart", "--quiet"], {
      stdio: "ignore",
      env: { ...process.env, TINKER_TS_DATA_DIR: server.dataDir, TINKER_API_KEY: "" },
    });
    expect(await once(quickstart, "exit")).toEqual([0, null]);
    await server.start();
    await using tab = await StudioTab.open(`${server.url}/studio`);
    const { page } = tab;
    const welcome = page.getByRole("region", { name: "Welcome" });
    await welcome.getByRole("link", { name: "quickstart" }).waitFor();
    const { runs } = await ask<StudioRuns>(server, "runs");
    const { nll, curve } = runs[0]!;
    expect(Number(nll?.last)).toBeLessThan(Number(nll?.first));
    expect(await welcome.innerText()).toMatch(/nll [\d.]+ → [\d.e−-]+/);
    expect(curve.length).toBeGreaterThan(10);
    expect(await welcome.locator("svg path").count()).toBeGreaterThan(0);
    const ways: Readonly<Record<string, RegExp>> = {
      "Chat with base and trained model": /\/studio\/playground\?run=/,
      "View training data": /tab=data/,
    };
    for (const [name, address] of Object.entries(ways)) {
      await welcome.getByRole("link", { name }).click();
      await expect.poll(() => page.url()).toMatch(address);
      await page.goBack();
    }
    await welcome.getByRole("button", { name: /Start your own/ }).click();
    await page.getByRole("dialog").getByText(server.url).first().waitFor();
    expect(await tab.violations()).toEqual([]);
  }, 400_000);

  it("order and groups survive a reload, Back, and another browser", async () => {
    // Last, least, largest and smoothed values put these in four different orders.
    const values = { one: [9, 1, 5], two: [2, 8, 4], three: [6, 6, 3] };
    for (const [run, nlls] of Object.entries(values))
      await logLines(server, run, [
        { kind: "open", name: `sorted-${run}`, group: run === "two" ? "b" : "a", tags: ["sorted"] },
        ...nlls.map((nll, step) => ({ kind: "metrics", step: step * 100, metrics: { nll } })),
      ]);
    await using tab = await StudioTab.open(`${server.url}/studio?q=tag:sorted`);
    const { page } = tab;
    const names = (at = page): Promise<string[]> =>
      at.locator("[data-run] .title a").allTextContents();
    await expect.poll(async () => (await names()).length).toBe(3);
    const orders: Readonly<Record<string, readonly string[]>> = {
      "nll.last": ["three", "two", "one"],
      "nll.min": ["one", "two", "three"],
      "nll.max": ["three", "two", "one"],
      "nll.smoothedLast": ["three", "two", "one"],
    };
    for (const [order, expected] of Object.entries(orders)) {
      await page.getByLabel("sort by").selectOption(order);
      await expect.poll(names).toEqual(expected.map((name) => `sorted-${name}`));
    }
    await page.getByLabel("sort by").selectOption("nll.min");
    await page.getByLabel("group by").selectOption("group");
    await expect.poll(names).toEqual(["sorted-one", "sorted-three", "sorted-two"]);
    const address = page.url();
    await page.reload();
    await expect.poll(names).toEqual(["sorted-one", "sorted-three", "sorted-two"]);
    await page.getByRole("link", { name: "sorted-one" }).click();
    await page.locator(".run-header").waitFor();
    await page.goBack();
    expect(page.url()).toBe(address);
    await expect.poll(names).toEqual(["sorted-one", "sorted-three", "sorted-two"]);
    await using fresh = await StudioTab.open(address);
    await expect
      .poll(() => names(fresh.page))
      .toEqual(["sorted-one", "sorted-three", "sorted-two"]);
  });

  it("names, tags, pins and the archive persist, and reach a second page without a reload", async () => {
    await logLines(server, "kept", [
      { kind: "open", name: "to-keep" },
      { kind: "metrics", step: 0, metrics: { nll: 1 } },
    ]);
    await using tab = await StudioTab.open(`${server.url}/studio?q=to-keep`);
    await using other = await StudioTab.open(`${server.url}/studio`);
    const { page } = tab;
    await page.getByRole("checkbox", { name: /to-keep/ }).check();
    const bar = page.getByRole("toolbar", { name: "Selected runs" });
    await bar.getByRole("button", { name: "Pin" }).click();
    // What is pinned comes first, on the other page too.
    await expect
      .poll(() => other.page.locator("[data-run] .title a").first().textContent())
      .toBe("to-keep");
    await bar.getByRole("button", { name: "Tag" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("mine");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await other.page.getByText("mine", { exact: true }).first().waitFor();
    await bar.getByRole("button", { name: "Archive" }).click();
    await other.page.getByRole("link", { name: "to-keep" }).waitFor({ state: "detached" });
    await page.goto(`${server.url}/studio?archived=1&q=to-keep`);
    await page.getByRole("link", { name: "to-keep" }).waitFor();
    const [kept] = (await ask<StudioRuns>(server, "runs?archived=1&q=to-keep")).runs;
    expect(kept).toMatchObject({ tags: ["mine"], isPinned: true });
    expect(kept!.archivedAt).not.toBeNull();
  });

  it("a failed run shows the server's reason, the step and the last checkpoint", async () => {
    const service = server.client();
    const training = await server.train(2, service);
    const { path: saved } = await training.saveState("good");
    await expect(
      (async () => {
        for (let step = 0; step < 4; step++) await trainStep(training, 1e30);
      })(),
    ).rejects.toThrow();
    const { statusReason, step, status } = await ask<StudioRunDetail>(
      server,
      `runs/${encodeURIComponent(training.modelId)}`,
    );
    expect([status, statusReason]).toEqual(["failed", expect.stringMatching(/finite/)]);
    await using tab = await StudioTab.open(runAddress(server, training.modelId));
    const ended = tab.page.getByRole("region", { name: "Reason for the end" });
    await ended.getByText(statusReason!).waitFor();
    await ended.getByText(`Failed at step ${step}.`).waitFor();
    await ended.getByText("Last checkpoint to resume from: good (step 2)").waitFor();
    await ended.getByText("How to resume").click();
    expect(await ended.innerText()).toContain(saved);
    await using list = await StudioTab.open(`${server.url}/studio?q=state:failed`);
    await list.page.getByText(statusReason!).first().waitFor();
    expect(await list.violations()).toEqual([]);
  }, 60_000);

  it("“stop and save” reaches the loop through its controls, and the run ends as done", async () => {
    const service = server.client();
    const training = await service.createLoraTrainingClient({
      baseModel: "tinker-ts/sprout",
      rank: 4,
    });
    const run = await RunLog.open({ service, name: "asked-to-stop" });
    run.watch(training);
    const loop = (async () => {
      for (let step = 0; !run.controls.stop; step++) {
        await trainStep(training);
        run.log({ "eval/right": step }, { step });
      }
      await training.saveState("asked");
      await run.close();
    })();
    await using tab = await StudioTab.open(`${server.url}/studio?q=asked-to-stop`);
    const { page } = tab;
    await page.getByRole("link", { name: "asked-to-stop" }).click();
    await page.getByRole("button", { name: /Stop/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop and save" }).click();
    await loop;
    await page.locator(".run-header .status", { hasText: "done" }).waitFor();
    await page.getByText(/asked to stop after this step and save in the studio/).waitFor();
    await page.getByText(/checkpoint tinker:\S+asked saved/).waitFor();
  }, 60_000);

  it("5,000 runs are scrolled and navigated with at most 60 rows in the document", async () => {
    const many = await StudioServer.start();
    try {
      const size = 500;
      for (let from = 0; from < 5000; from += size) await logManyRuns(many, from, size);
      await using tab = await StudioTab.open(`${many.url}/studio?sort=name`);
      const { page } = tab;
      await page.getByText("5,000 runs").waitFor();
      const rows = page.locator("[data-run]");
      const count = (): Promise<number> => rows.count();
      expect(await count()).toBeLessThanOrEqual(60);
      await page.mouse.move(640, 500);
      for (let turn = 0; turn < 10; turn++) {
        await page.mouse.wheel(0, 20_000);
        expect(await count()).toBeLessThanOrEqual(60);
      }
      await page.keyboard.press("End");
      await page.getByRole("link", { name: "many-4999" }).waitFor();
      expect(await count()).toBeLessThanOrEqual(60);
      await page.keyboard.press("Home");
      await page.getByRole("link", { name: "many-0000" }).waitFor();
      for (let press = 0; press < 40; press++) await page.keyboard.press("j");
      await expect
        .poll(() => page.locator("[data-run].active .title a").textContent())
        .toBe("many-0039");
      await page.keyboard.press("k");
      await page.keyboard.press("Enter");
      await expect.poll(() => page.url()).toContain("/runs/many-0038");
    } finally {
      await many.close();
    }
  }, 180_000);
});

async function logManyRuns(server: StudioServer, from: number, size: number): Promise<void> {
  const lines = Array.from({ length: size }, (_, index) => {
    const run = `many-${String(from + index).padStart(4, "0")}`;
    return [
      { run, writer: "w", n: 1, kind: "open", name: run },
      { run, writer: "w", n: 2, kind: "metrics", step: 0, metrics: { nll: index } },
    ];
  }).flat();
  const response = await fetch(`${server.url}/api/v1/logs`, {
    method: "POST",
    headers: { "content-type": "application/x-ndjson", "x-api-key": "tml-studio" },
    body: lines.map((line) => `${JSON.stringify(line)}\n`).join(""),
  });
  expect(response.status, await response.text()).toBe(200);
}
