import { describe, expect, it } from "vitest";
import { CheckpointPath } from "./checkpoint-path.js";
import { checkAdamParams, checkLoraConfig, checkSamplingParams } from "./validate.js";

describe("parameters", () => {
  it("fill their defaults in", () => {
    expect(checkSamplingParams({ maxTokens: 5 })).toEqual({
      maxTokens: 5,
      seed: null,
      stop: null,
      temperature: 1,
      topK: -1,
      topP: 1,
    });
    expect(checkAdamParams({ learningRate: 1e-3 }).eps).toBe(1e-12);
    expect(checkLoraConfig({ rank: 8 }).trainMlp).toBe(true);
  });

  it.each([
    [{ maxTokens: 0 }, "samplingParams.maxTokens"],
    [{ temperature: -1 }, "samplingParams.temperature"],
    [{ topK: -2 }, "samplingParams.topK"],
    [{ topP: 0 }, "samplingParams.topP"],
    [{ topP: 1.1 }, "samplingParams.topP"],
    [{ stop: "" }, "samplingParams.stop"],
    [{ stop: [-1] }, "samplingParams.stop"],
    [{ maxTokens: 1.5 }, "maxTokens"],
    [{ max_tokens: 5 }, "max_tokens"],
    [{ temperature: Number.NaN }, "temperature"],
  ])("refuse sampling with %o", (params, field) => {
    expect(() => checkSamplingParams(params as never)).toThrow(field);
  });

  it.each([
    [{ learningRate: -1 }, "adamParams.learningRate"],
    [{ beta1: 1 }, "adamParams.beta1"],
    [{ beta2: -0.1 }, "adamParams.beta2"],
    [{ eps: -1 }, "adamParams.eps"],
    [{ weightDecay: -1 }, "adamParams.weightDecay"],
    [{ gradClipNorm: -1 }, "adamParams.gradClipNorm"],
    [{ lr: 1 }, "lr"],
  ])("refuse a step with %o", (params, field) => {
    expect(() => checkAdamParams(params as never)).toThrow(field);
  });

  it("refuse an adapter that trains nothing", () => {
    const config = { rank: 4, trainAttn: false, trainMlp: false, trainUnembed: false };
    expect(() => checkLoraConfig(config)).toThrow("at least one");
    expect(() => checkLoraConfig({ rank: 0 })).toThrow("loraConfig.rank");
  });
});

describe("CheckpointPath", () => {
  it("parses and formats", () => {
    const path = CheckpointPath.parse("tinker://run-1/sampler_weights/final");
    expect(path).toMatchObject({
      trainingRunId: "run-1",
      checkpointType: "sampler",
      name: "final",
    });
    expect(path.checkpointId).toBe("sampler_weights/final");
    expect(String(path)).toBe("tinker://run-1/sampler_weights/final");
    expect(CheckpointPath.parse("tinker://a:train:0/weights/b").checkpointType).toBe("training");
  });

  it.each([
    "run-1/weights/a",
    "tinker://run-1/weights",
    "tinker://run-1/foo/a",
    "tinker://a/weights/b/c",
    "tinker:///weights/x",
    "",
  ])("refuses %j", (path) => {
    expect(() => CheckpointPath.parse(path)).toThrow("tinker://<run>/weights/<name>");
  });
});
