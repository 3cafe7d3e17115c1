import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { StudioRuns } from "tinker-ts/wire/studio";
import { closeBrowser, StudioTab, textOf } from "./support/browser.js";
import { ask, runAddress } from "./support/log-lines.js";
import { StudioServer } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";

describe.runIf(isFull)("folders of the Python cookbook", () => {
  const root = mkdtempSync(path.join(tmpdir(), "tinker-ts-folders-"));
  const logs = path.join(root, "logs");
  let server: StudioServer;

  const write = (name: string, text: string): void => {
    mkdirSync(path.dirname(path.join(logs, name)), { recursive: true });
    writeFileSync(path.join(logs, name), text);
  };
  const lines = (...rows: readonly unknown[]): string =>
    rows.map((row) => `${typeof row === "string" ? row : JSON.stringify(row)}\n`).join("");

  beforeAll(async () => {
    write("sft-1/config.json", '{"num_epochs": 1, "model_name": "tinker-ts/sprout", "lr": NaN}');
    write(
      "sft-1/metrics.jsonl",
      lines(
        '{"step": 0, "train_mean_nll": 3.0, "progress": 0.0}',
        '{"step": 1, "train_mean_nll": NaN}',
        '{"step": 2, "train_mean_nll": 2.0}',
        '{"step": 1, "train_mean_nll": 1.5}', // a second attempt
        '{"step": 2, "train_mean_nll": Infinity}',
      ) + '{"step": 3, "train_me',
    );
    write("sft-1/logs.log", lines("train:1 [INFO] python train.py", "train:9 [ERROR] it broke"));
    write("sft-1/checkpoints.jsonl", lines({ name: "000002", batch: 2, state_path: "tinker://x" }));
    write(
      "sft-1/timing_spans.jsonl",
      lines({
        step: 2,
        spans: [{ name: "get_batch", duration: 1, wall_start: 0, wall_end: 1 }],
      }),
    );
    write("sft-1/trace_events.jsonl", lines({ name: "a", ph: "X" }, { name: "b", ph: "X" }));
    const diff = (file: string, change: string): string =>
      `diff --git a/${file} b/${file}\n${change}\n`;
    const head = `### repo: /somewhere @ abc\n${diff("same.py", "+1")}`;
    write("sft-1/code.diff", head + diff("train.py", "-<b>old</b>\n+<b>new</b>"));
    write("dpo-1/code.diff", head + diff("train.py", "+other") + diff("more.py", "+2"));
    write("sft-1/train.html", "<script>document.title = 'owned'</script>");

    write("dpo-1/config.json", '{"dpo_beta": 0.1, "model_name": "m"}');
    write("dpo-1/metrics.jsonl", lines({ step: 0, dpo_loss: 0.7, accuracy: 0.5, margin: 0.0 }));

    write("rl-1/config.json", '{"loss_fn": "ppo", "model_name": "tinker-ts/sprout"}');
    write("rl-1/metrics.jsonl", lines({ step: 0, "env/all/reward/total": 0.5 }));
    const summary = (traj: number) => ({
      schema_version: 1,
      split: "train",
      iteration: 0,
      group_idx: 0,
      traj_idx: traj,
      total_reward: traj,
      steps: [{ step_idx: 0, ob_len: 5, ac_len: 2, reward: traj, logs: { seen: "<b>bold</b>" } }],
    });
    write("rl-1/iteration_000000/train_rollout_summaries.jsonl", lines(summary(0), summary(1)));
    const talk = (messages: readonly unknown[]) => ({
      tag: "div",
      attrs: {},
      children: ["&lt;b&gt;"],
      data: { type: "conversation", messages },
    });
    write(
      "rl-1/iteration_000000/train_logtree.json",
      JSON.stringify({
        title: "t",
        root: {
          tag: "body",
          children: [
            talk([
              { role: "system", content: "Be <i>brief</i>." },
              { role: "user", content: [{ type: "text", text: "What is 17·23?" }] },
              {
                role: "assistant",
                content: [
                  { type: "thinking", thinking: "<script>think()</script>" },
                  { type: "text", text: "It is 381." },
                ],
                tool_calls: [{ function: { name: "multiply", arguments: '{"a": 17}' } }],
              },
            ]),
            talk([{ role: "assistant", content: "two" }]),
          ],
        },
      }),
    );
    write("rl-1/iteration_000000/train.html", "<script>document.title = 'owned'</script>");
    write(
      "rl-1/capture/sample.jsonl",
      lines({
        kind: "sample",
        scope: { run_id: "r", split: "train", iteration: 0, group_idx: 3, traj_idx: 1 },
        base_model: "tinker-ts/sprout",
        prompt_tokens: [300, 301],
        samples: [{ tokens: [302, 303, 304], logprobs: [-0.5, -1, -1.5], stop_reason: "stop" }],
        status: "ok",
      }),
    );

    write("evals/runs.jsonl", lines({ run_id: "final_1" }));
    write(
      "evals/runs/final_1/metadata.json",
      JSON.stringify({
        run_id: "final_1",
        model_name: "m",
        checkpoint_name: "final",
        benchmarks: ["gsm8k"],
        scores: { gsm8k: 0.5 },
      }),
    );
    write(
      "evals/runs/final_1/gsm8k/result.json",
      JSON.stringify({ name: "gsm8k", score: 0.5, num_examples: 2, metrics: { "a/b": 1 } }),
    );
    write(
      "evals/runs/final_1/gsm8k/trajectories.jsonl",
      lines(
        {
          idx: 0,
          benchmark: "gsm8k",
          example_id: "a",
          turns: [
            { role: "user", content: "1+1?", token_count: 4, metadata: {} },
            { role: "assistant", content: "2", token_count: 1, metadata: {} },
          ],
          reward: 1,
          metrics: { correct: 1 },
          logs: { expected: "2" },
          error: null,
        },
        { idx: 1, benchmark: "gsm8k", example_id: "b", turns: [], reward: 0, error: "timed out" },
      ),
    );

    writeFileSync(path.join(root, "outside.json"), '{"secret": "hidden"}');
    symlinkSync(path.join(root, "outside.json"), path.join(logs, "sft-1", "linked.json"));
    symlinkSync(root, path.join(logs, "out"));
    server = await StudioServer.start("--logs", logs);
  }, 60_000);

  afterAll(async () => {
    await closeBrowser();
    await server.close();
    rmSync(root, { recursive: true, force: true });
  });

  const idOf = async (name: string): Promise<string> =>
    (await ask<StudioRuns>(server, "runs")).runs.find((run) => run.name === name)!.id;

  it("open whole, with bare NaN, half a last line and two attempts", async () => {
    await using list = await StudioTab.open(`${server.url}/studio`);
    for (const name of ["sft-1", "dpo-1", "rl-1", "final_1"])
      await list.page.getByRole("link", { name }).first().waitFor();
    expect(await list.violations()).toEqual([]);
    await using tab = await StudioTab.open(runAddress(server, await idOf("sft-1"), "?table=nll"));
    const { page } = tab;
    const rows = page.locator('[data-metric="nll"] tbody tr');
    await expect
      .poll(() => rows.allTextContents())
      .toEqual([
        "sft-103",
        "sft-111.5",
        "sft-12+Inf",
        "sft-1 attempt 1, replaced1NaN",
        "sft-1 attempt 1, replaced22",
      ]);
    await page.getByText("checkpoint 000002 saved").waitFor();
    await page.getByText("get_batch").waitFor();
    await page.goto(runAddress(server, await idOf("sft-1"), "?tab=log&level=warning"));
    await expect
      .poll(() => page.getByLabel("Log", { exact: true }).innerText())
      .toBe("train:9 [ERROR] it broke");
    await page.goto(runAddress(server, await idOf("sft-1"), "?tab=config"));
    await page.getByText("num_epochs").waitFor();
    await page.goto(runAddress(server, await idOf("dpo-1")));
    for (const name of ["dpo_loss", "accuracy", "margin"])
      await page.locator(`[data-metric="${name}"]`).waitFor();
  });

  it("are followed as they grow, without a reload", async () => {
    const id = await idOf("sft-1");
    await using list = await StudioTab.open(`${server.url}/studio`);
    await using tab = await StudioTab.open(runAddress(server, id, "?table=nll"));
    const rows = tab.page.locator('[data-metric="nll"] tbody tr');
    await rows.first().waitFor();
    appendFileSync(path.join(logs, "sft-1/metrics.jsonl"), 'an_nll": 0.25}\n');
    await expect.poll(() => rows.allTextContents(), { timeout: 10_000 }).toContain("sft-130.25");
    await list.page.getByRole("row", { name: /sft-1.*0\.25/ }).waitFor();
    await using log = await StudioTab.open(runAddress(server, id, "?tab=log"));
    await log.page.getByText("it broke").waitFor();
    appendFileSync(path.join(logs, "sft-1/logs.log"), "train:10 [INFO] it goes on\n");
    await log.page.getByText("it goes on").waitFor();
    write("new-1/metrics.jsonl", lines({ step: 0, loss: 1 }));
    await list.page.getByRole("link", { name: "new-1" }).first().waitFor();
  }, 60_000);

  it("show roles, thinking and tool calls of a rollout as text", async () => {
    const id = await idOf("rl-1");
    await using tab = await StudioTab.open(runAddress(server, id, "?tab=rollouts&as=messages"));
    const { page } = tab;
    await page.getByRole("button", { name: /#0 · reward 0/ }).click();
    const messages = page.locator(".messages li");
    await expect.poll(() => messages.count()).toBe(3);
    expect(await messages.locator(".tag").allTextContents()).toEqual([
      "system",
      "user",
      "assistant",
    ]);
    expect(await messages.nth(0).innerText()).toContain("Be <i>brief</i>.");
    const said = await messages.nth(2).innerText();
    for (const part of ["<think>", "<script>think()</script>", "It is 381.", "multiply"])
      expect(said).toContain(part);
    await page.getByText(/Environment log/).click();
    await page.getByText("seen: <b>bold</b>").waitFor();
    expect(await tab.violations()).toEqual([]);
  });

  it("show captured samples, token by token", async () => {
    const id = await idOf("rl-1");
    await using tab = await StudioTab.open(runAddress(server, id));
    const { page } = tab;
    await page.getByRole("link", { name: "Samples" }).click();
    await page.locator(".tokens").waitFor();
    await page.locator(".tokens").focus();
    await page.keyboard.press("End");
    await expect.poll(() => page.locator("dl.facts").textContent()).toMatch(/id304.*sampler−1\.5/);
    expect(await page.locator(".exhibit-row").textContent()).toContain("3 tokens · nll 1 · stop");
    expect(await tab.violations()).toEqual([]);
  });

  it("show evaluations with their scores and answers", async () => {
    const id = await idOf("final_1");
    await using tab = await StudioTab.open(runAddress(server, id, "?table=gsm8k/score"));
    const { page } = tab;
    await page.locator(".run-header").getByText("done").waitFor();
    await page.locator("summary", { hasText: "gsm8k" }).click();
    await expect
      .poll(() => page.locator('[data-metric="gsm8k/score"] tbody tr').allTextContents())
      .toEqual(["00.5"]);
    await page.goto(runAddress(server, id, "?tab=rollouts&as=messages"));
    await page
      .getByRole("button", { name: /reward 1/ })
      .last()
      .click();
    await page.locator(".messages").getByText("1+1?").waitFor();
  });

  it("list the differing files of their code in Compare", async () => {
    const ids = [await idOf("sft-1"), await idOf("dpo-1")];
    await using tab = await StudioTab.open(`${server.url}/studio/compare?runs=${ids.join(",")}`);
    const rows = tab.page.locator(".config-diff tbody tr");
    const changes = async (): Promise<string[]> =>
      (await rows.allTextContents()).filter((text) => text.startsWith("code.diff"));
    await expect
      .poll(changes)
      .toEqual([
        expect.stringMatching(/^code\.diff\.somewhere\/more\.py.*\+1 −0/),
        expect.stringMatching(/^code\.diff\.somewhere\/train\.py\+1 −1 .*\+1 −0/),
      ]);
  });

  it("serve only their own files, and HTML files only as downloads", async () => {
    const id = await idOf("sft-1");
    await using tab = await StudioTab.open(runAddress(server, id, "?tab=files"), {
      allowedFailures: [/status of 404/],
    });
    const { page } = tab;
    const names = page.locator('section[aria-label="Files"] td.mono');
    await names.first().waitFor();
    expect(await names.allTextContents()).not.toContain("linked.json");
    const asked = (name: string): Promise<[number, string | null]> =>
      page.evaluate(async (target) => {
        const response = await fetch(target);
        return [response.status, response.headers.get("content-type")];
      }, `${server.url}/studio/api/runs/${id}/files/${name}`);
    for (const name of [
      "linked.json",
      "%2e%2e/%2e%2e/outside.json",
      "..%2f..%2foutside.json",
      "iteration_000000/..%2f..%2f..%2foutside.json",
      "%2fetc%2fpasswd",
    ])
      expect([name, (await asked(name))[0]]).toEqual([name, 404]);
    expect(await asked("train.html")).toEqual([200, "application/octet-stream"]);
    const row = page.locator("tr", { hasText: "train.html" });
    expect(await row.getByRole("button", { name: "show" }).count()).toBe(0);
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      row.getByRole("button", { name: "download" }).click(),
    ]);
    expect(file.suggestedFilename()).toBe("train.html");
    await page
      .locator("tr", { hasText: "code.diff" })
      .getByRole("button", { name: "show" })
      .click();
    await page.getByText("-<b>old</b>").waitFor();
    const [csv] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "All points as CSV" }).click(),
    ]);
    expect((await textOf(csv)).split("\n")[1]).toMatch(/^1,0,,/); // a line that does not say when
    const [trace] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "for Perfetto" }).click(),
    ]);
    expect(JSON.parse(await textOf(trace))).toHaveLength(2);
    // Its own address in a tab is a file to keep, not a page.
    const other = await tab.context.newPage();
    const kept = other.waitForEvent("download");
    await other.goto(`${server.url}/studio/api/runs/${id}/files/train.html`).catch(() => undefined);
    await kept;
    expect(await other.title()).not.toBe("owned");
  });
});
