import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FakeService } from "../support/fake-service.js";

describe.each(["proto", "json"] as const)("a whole program against a %s server", (dialect) => {
  let service: FakeService;
  beforeEach(async () => {
    service = await FakeService.start(dialect);
  });
  afterEach(() => service.close());

  it("trains, saves, samples", async () => {
    const client = service.client();
    const training = await client.createLoraTrainingClient({ baseModel: "m" });
    const data = [{ modelInput: [1, 2], lossFnInputs: { target_tokens: [2, 3], weights: [1, 1] } }];
    const pass = training.forwardBackward(data, "cross_entropy");
    const step = training.optimStep({ learningRate: 1e-3 });
    expect((await pass).lossFnOutputs[0]!["logprobs"]!.toList()).toEqual([0, 0]);
    expect((await step).metrics).toEqual({ "lr:mean": 1 });
    expect((await training.forward(data, "cross_entropy")).metrics).toEqual({ "loss:sum": 1 });
    expect((await training.saveState("a")).path).toBe("tinker://run/weights/a");
    const sampling = await training.saveWeightsAndGetSamplingClient();
    const sampled = await sampling.sample({ prompt: [1, 2], samplingParams: { maxTokens: 2 } });
    expect([...sampled.sequences[0]!.tokens]).toEqual([7, 8]);
    expect(await sampling.computeLogprobs([1, 2])).toEqual([null, -2]);
    expect(service.log.filter((line) => /^(warn|error)/.test(line))).toEqual([]);
  });
});
