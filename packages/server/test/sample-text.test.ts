import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient } from "tinker-ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startServer } from "../src/index.js";
import { realModels } from "./support/real-models.js";

const ask = {
  prompt: [1, 2],
  numSamples: 2,
  samplingParams: { maxTokens: 12, temperature: 1, seed: 1 },
};

describe.each([false, true])("a sample (side thread: %s)", (sideThread) => {
  let dataDir: string;
  let service: ServiceClient;
  let close: () => Promise<void>;

  beforeEach(async () => {
    dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-text-"));
    const server = await startServer({ port: 0, dataDir, models: realModels, logLevel: "silent" });
    service = new ServiceClient({ baseUrl: server.url, telemetry: false, sideThread });
    close = () => server.close();
  });
  afterEach(async () => {
    await service.close();
    await close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  it("has texts once the client has its tokenizer, and not before", async () => {
    const sampling = await service.createSamplingClient({ baseModel: "qwen3" });
    const before = await sampling.sample(ask);
    expect(before.sequences.map((sequence) => "text" in sequence)).toEqual([false, false]);
    const tokenizer = await sampling.getTokenizer();
    const { sequences } = await sampling.sample(ask);
    expect(sequences).toEqual(before.sequences);
    const texts = sequences.map(({ tokens }) =>
      tokenizer.decode(tokens, { skipSpecialTokens: true }),
    );
    expect(texts.join("")).not.toBe("");
    expect(sequences.map(({ text }) => text)).toEqual(texts);
    const without = await sampling.sample({ ...ask, tokenizer: null });
    expect("text" in without.sequences[0]!).toBe(false);
  });

  it("has texts by the tokenizer that the training client loaded, before or after", async () => {
    const training = await service.createLoraTrainingClient({ baseModel: "qwen3", rank: 2 });
    const sampling = await training.saveWeightsAndGetSamplingClient();
    await training.getTokenizer();
    const next = await training.saveWeightsAndGetSamplingClient();
    for (const client of [sampling, next]) {
      expect((await client.sample(ask)).sequences[0]!.text).toEqual(expect.any(String));
    }
  });
});
