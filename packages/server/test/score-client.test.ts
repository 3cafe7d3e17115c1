import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ServiceClient, TensorData, type SamplingClient } from "tinker-ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type RunningServer } from "../src/index.js";
import { realModels } from "./support/real-models.js";

let dataDir: string;
let server: RunningServer;
beforeAll(async () => {
  dataDir = mkdtempSync(path.join(tmpdir(), "tinker-ts-scores-"));
  server = await startServer({ port: 0, dataDir, models: realModels, logLevel: "silent" });
});
afterAll(async () => {
  await server.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const prompt = [5, 6, 7, 8];
const asked = { prompt, samplingParams: { maxTokens: 3, seed: 1 } };
const targets = new TensorData({ data: Int32Array.of(6, -1, 7, 9, 8, -1), shape: [3, 2] });

describe.each(["proto", "json"] as const)("scores in the dialect %s", (dialect) => {
  describe.each([false, true])("with a side thread: %s", (sideThread) => {
    let service: ServiceClient;
    let sampling: SamplingClient;
    beforeAll(async () => {
      const options = { baseUrl: server.url, telemetry: false, dialect, sideThread };
      service = new ServiceClient(options);
      sampling = await service.createSamplingClient({ baseModel: "qwen3" });
    });
    afterAll(() => service.close());

    it("come with a sample", async () => {
      const response = await sampling.sample({
        ...asked,
        numSamples: 2,
        includePromptLogprobs: true,
        promptLogprobsLastN: 2,
        topkSampleLogprobs: 2,
        targetPromptLogprobs: targets,
        promptAltTokensK: 2,
      });
      const logprobs = await sampling.computeLogprobs(prompt);
      expect(response.promptLogprobs).toEqual([null, null, ...logprobs.slice(2)]);
      const scores = response.targetPromptLogprobs!;
      expect(scores).toBeInstanceOf(TensorData);
      expect([scores.dtype, scores.shape]).toEqual(["float32", [3, 2]]);
      const { data } = scores;
      expect([data[0], data[2], data[4]]).toEqual(logprobs.slice(1));
      expect([data[1], data[5]]).toEqual([0, 0]);
      const { tokens, logprobs: drawn } = response.promptAltTokens!;
      expect([tokens.dtype, tokens.shape, drawn.shape]).toEqual(["int64", [3, 2], [3, 2]]);
      expect(drawn).toBeInstanceOf(TensorData);
      for (const { topkLogprobs } of response.sequences) {
        expect(topkLogprobs!.map((row) => row!.length)).toEqual([2, 2, 2]);
      }
    });

    it("are null where nothing was asked", async () => {
      const response = await sampling.sample(asked);
      const { targetPromptLogprobs, promptAltTokens, sequences } = response;
      expect([targetPromptLogprobs, promptAltTokens]).toEqual([null, null]);
      expect(sequences[0]!.topkLogprobs).toBeNull();
    });

    it("of the last positions come alone", async () => {
      const logprobs = await sampling.computeLogprobs(prompt);
      const last = await sampling.computeLogprobs(prompt, { promptLogprobsLastN: 1 });
      expect(last).toEqual([null, null, null, logprobs[3]]);
    });

    it("come beside the tokens of a stream", async () => {
      const stream = sampling.stream({ ...asked, topkSampleLogprobs: 2 });
      const rows = [];
      for await (const { topLogprobs } of stream) rows.push(topLogprobs);
      const { sequences } = await stream.response;
      expect(rows).toEqual(sequences[0]!.topkLogprobs);
    });

    it("come without a session, too", async () => {
      const options = { ...asked, baseModel: "qwen3", targetPromptLogprobs: targets };
      const { targetPromptLogprobs } = await service.sample(options);
      expect(targetPromptLogprobs!.shape).toEqual([3, 2]);
    });
  });
});
