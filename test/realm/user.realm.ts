import { ServiceClient } from "tinker-ts";
import { expect, it } from "vitest";

const tokens = Int32Array.from({ length: 8 }, (_, index) => index + 3);
const datum = {
  modelInput: tokens,
  lossFnInputs: { target_tokens: tokens, weights: new Float32Array(8).fill(1) },
};

it("trains, saves, loads and samples in the test of a user", async () => {
  // Bytes that Node makes are of another class here than arrays of the test itself.
  expect(structuredClone(tokens)).not.toBeInstanceOf(Int32Array);
  const service = new ServiceClient({ baseUrl: "local:" });
  const baseModel = process.env["TINKER_MODEL"] ?? "";
  const training = await service.createLoraTrainingClient({ baseModel, rank: 4 });
  await training.forwardBackward([datum], "cross_entropy");
  await training.optimStep({ learningRate: 1e-2 });
  const trained = await training.forward([datum], "cross_entropy");
  expect(trained.lossFnOutputs[0]?.["logprobs"]?.data).toBeInstanceOf(Float32Array);
  const { path } = await training.saveState("mine");
  const loaded = await service.createTrainingClientFromState(path);
  expect((await loaded.forward([datum], "cross_entropy")).metrics).toEqual(trained.metrics);
  const sampling = await training.saveWeightsAndGetSamplingClient();
  const { sequences } = await sampling.sample({ prompt: [5], samplingParams: { maxTokens: 4 } });
  expect(sequences[0]?.tokens).toHaveLength(4);
  await service.close();
});
