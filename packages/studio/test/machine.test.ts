import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TrainingClient } from "tinker-ts";
import type { StudioMachine, StudioUsage } from "tinker-ts/wire/studio";
import { closeBrowser, StudioTab } from "./support/browser.js";
import { ask } from "./support/log-lines.js";
import { StudioServer, trainStep } from "./support/server.js";

const isFull = process.env["TINKER_TS_TEST_FULL"] === "1";
const key = { "x-api-key": "tml-studio", "content-type": "application/json" };

describe.runIf(isFull)("the machine", () => {
  let server: StudioServer;
  beforeAll(async () => {
    server = await StudioServer.start();
  }, 60_000);
  afterAll(async () => {
    await closeBrowser();
    await server.close();
  });

  /** A pass with a number of its own, as a client would send it that lost the ones before. */
  const pass = async (training: TrainingClient, seqId: number): Promise<string> => {
    const response = await fetch(`${server.url}/api/v1/forward_backward`, {
      method: "POST",
      headers: key,
      body: JSON.stringify({
        model_id: training.modelId,
        seq_id: seqId,
        forward_backward_input: {
          loss_fn: "cross_entropy",
          data: [
            {
              model_input: { chunks: [{ type: "encoded_text", tokens: [5, 8, 13] }] },
              loss_fn_inputs: {
                target_tokens: { data: [8, 13, 21], dtype: "int64", shape: [3] },
                weights: { data: [1, 1, 1], dtype: "float32", shape: [3] },
              },
            },
          ],
        },
      }),
    });
    const { request_id: id } = (await response.json()) as { request_id: string };
    expect(response.status, id).toBe(200);
    return id;
  };
  /** The response of a poll for a request. */
  const poll = async (requestId: string): Promise<Record<string, unknown>> => {
    const response = await fetch(`${server.url}/api/v1/retrieve_future`, {
      method: "POST",
      headers: key,
      body: JSON.stringify({ request_id: requestId }),
    });
    return (await response.json()) as Record<string, unknown>;
  };

  it("queues, their lengths and reasons match the responses of polls; a missing number is named", async () => {
    const training = await server.train(1);
    const { seqId } = await lastSeq(server, training);
    const early = await pass(training, seqId + 3); // two are missing
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const { page } = tab;
    const lane = page.locator(`[data-model="${training.modelId}"]`);
    await expect.poll(() => lane.locator("td").nth(2).textContent()).toBe("1");
    const { queue_state: state, queue_state_reason: reason } = await poll(early);
    expect([state, reason]).toEqual([expect.any(String), expect.stringContaining(`${seqId + 1}`)]);
    await expect.poll(() => lane.locator("td").nth(4).textContent()).toBe(reason);
    expect(await tab.violations()).toEqual([]);
    // It goes on as soon as they come.
    for (const missing of [seqId + 1, seqId + 2]) await pass(training, missing);
    await expect.poll(() => lane.locator("td").nth(2).textContent()).toBe("0");
    await expect.poll(() => lane.locator("td").nth(4).textContent()).toBe("");
  }, 60_000);

  it("usage by run adds up to the billed usage, also for a session with several models", async () => {
    const service = server.client();
    const [one, other] = [await server.train(2, service), await server.train(3, service)];
    const sampling = await one.saveWeightsAndGetSamplingClient();
    await sampling.sample({ prompt: [5, 8], samplingParams: { maxTokens: 6 } });
    const { path } = await other.saveWeightsForSampler("named");
    await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: key,
      body: JSON.stringify({ model: path, prompt: "Hello", max_tokens: 4 }),
    });
    const hour = 3_600_000;
    const from = new Date(Math.floor(Date.now() / hour) * hour - hour).toISOString();
    const to = new Date(Math.floor(Date.now() / hour) * hour + hour).toISOString();
    const sums = async () => {
      const { rows } = await ask<StudioUsage>(server, "usage");
      const response = await fetch(
        `${server.url}/api/v1/billing/usage/events?starting_on=${from}&ending_before=${to}`,
        { headers: key },
      );
      const { data } = (await response.json()) as {
        data: { event_info: { type: string; token_count?: number } }[];
      };
      return { rows, data };
    };
    const { rows, data } = await sums();
    const total = (field: "trainingTokens" | "prefillTokens" | "sampledTokens"): number =>
      rows.reduce((sum, row) => sum + row[field], 0);
    const billed = (type: string): number =>
      data
        .filter(({ event_info: info }) => info.type === type)
        .reduce((sum, { event_info: info }) => sum + (info.token_count ?? 0), 0);
    expect(total("trainingTokens")).toBeGreaterThan(0);
    expect(total("sampledTokens")).toBeGreaterThan(1);
    expect({
      training: total("trainingTokens"),
      prefill: total("prefillTokens"),
      sampled: total("sampledTokens"),
    }).toEqual({
      training: billed("training"),
      prefill: billed("sampling_prefill"),
      sampled: billed("sampling_sample"),
    });
    const tokensOf = (training: TrainingClient): number =>
      rows
        .filter(({ run }) => run === training.modelId)
        .reduce((sum, row) => sum + row.trainingTokens, 0);
    expect(tokensOf(other) / tokensOf(one)).toBe(1.5);
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const usage = tab.page.getByRole("region", { name: "Usage" });
    await usage.getByRole("link", { name: "named" }).first().waitFor();
    expect(await usage.getByText("without a run").count()).toBe(0);
  }, 60_000);

  it("closes a session after confirmation; its client gets the reason", async () => {
    const service = server.client();
    const training = await server.train(1, service);
    const sessionOf = async () =>
      (await ask<StudioMachine>(server, "machine")).sessions.find(({ models }) =>
        models.includes(training.modelId),
      );
    const { id } = (await sessionOf())!;
    await using tab = await StudioTab.open(`${server.url}/studio/machine`);
    const row = tab.page.locator("tr", { hasText: id });
    await row.getByRole("button", { name: "close" }).click();
    const dialog = tab.page.getByRole("dialog");
    await dialog.getByText("Its 1 model").waitFor();
    await dialog.getByRole("button", { name: "Close session" }).click();
    await row.waitFor({ state: "detached" });
    expect(await sessionOf()).toBeUndefined();
    await expect(trainStep(training)).rejects.toThrow(/closed in the studio/);
    const response = await fetch(`${server.url}/api/v1/audit`, { headers: key });
    const { entries } = (await response.json()) as {
      entries: { event: string; purpose: string | null }[];
    };
    expect(entries).toContainEqual(
      expect.objectContaining({ event: "session.closed", purpose: "studio" }),
    );
  }, 60_000);
});

/** The last number that a model has used: its steps are a pass and an optimizer step each. */
async function lastSeq(server: StudioServer, training: TrainingClient): Promise<{ seqId: number }> {
  const found = await ask<{ step: number }>(server, `runs/${encodeURIComponent(training.modelId)}`);
  return { seqId: found.step * 2 };
}
