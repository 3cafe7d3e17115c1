import { describe, expect, it } from "vitest";
import { EngineError } from "../errors.js";
import type { ModelConfig } from "../model/model-config.js";
import type { Datum, LossInput } from "./datum.js";
import { prepareData } from "./prepare-data.js";

const config: ModelConfig = {
  architecture: "llama",
  vocabSize: 10,
  hiddenSize: 8,
  intermediateSize: 8,
  layers: 1,
  heads: 1,
  kvHeads: 1,
  headDim: 8,
  normEpsilon: 1e-6,
  rope: { theta: 10_000, scaling: null },
  contextLength: 4,
  tiedEmbeddings: true,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  qkNorm: false,
  bosTokenId: null,
  eosTokenIds: [],
};

function input(data: readonly number[], shape: readonly number[] = [data.length]): LossInput {
  return { data, shape };
}

const good: Datum = {
  tokens: [1, 2, 3],
  inputs: { target_tokens: input([2, 3, 4]), weights: input([0, 1, 0.5]) },
};
const reinforcement: Datum = {
  tokens: [1, 2],
  inputs: {
    target_tokens: input([2, 3]),
    logprobs: input([-1, -2]),
    advantages: input([0, 1]),
  },
};

function withInput(name: string, value: LossInput, datum = good): Datum {
  return { ...datum, inputs: { ...datum.inputs, [name]: value } };
}

function refusal(data: readonly Datum[], loss = "cross_entropy", settings = {}): string {
  try {
    prepareData(config, data, loss, settings);
  } catch (error) {
    if (error instanceof EngineError && error.category === "user") return error.message;
    throw error;
  }
  throw new Error("no error was thrown");
}

describe("prepareData", () => {
  it("converts a datum to plain arrays and marks rows that have a gradient", () => {
    const { data } = prepareData(config, [good], "cross_entropy");
    expect(data[0]).toEqual({
      tokens: Int32Array.of(1, 2, 3),
      targetsPerRow: 1,
      targets: Int32Array.of(2, 3, 4),
      inputs: { weights: Float32Array.of(0, 1, 0.5) },
      settings: {},
      activeRows: Uint8Array.of(0, 1, 1),
      targetShape: [3],
    });
  });

  it("gives targets of cross_entropy the weight 1 by default", () => {
    const inputs = { target_tokens: input([2, 3, 4, 5], [2, 2]) };
    const { data } = prepareData(config, [{ tokens: [1, 2], inputs }], "cross_entropy");
    expect(data[0]?.inputs).toEqual({ weights: Float32Array.of(1, 1, 1, 1) });
    expect(data[0]?.activeRows).toEqual(Uint8Array.of(1, 1));
  });

  it("completes settings, and reads them per position from a datum", () => {
    const thresholds = withInput("clip_low_threshold", input([0.1, 0.2]), reinforcement);
    const { data } = prepareData(config, [reinforcement, thresholds], "ppo", {
      clip_high_threshold: 1.5,
    });
    expect(data[0]?.settings).toEqual({
      clip_low_threshold: Float32Array.of(0.8, 0.8),
      clip_high_threshold: Float32Array.of(1.5, 1.5),
    });
    expect(data[1]?.settings["clip_low_threshold"]).toEqual(Float32Array.of(0.1, 0.2));
    expect(data[0]?.activeRows).toEqual(Uint8Array.of(0, 1));
  });

  it("trains every position with dro", () => {
    const { data } = prepareData(config, [reinforcement], "dro");
    expect(data[0]?.activeRows).toEqual(Uint8Array.of(1, 1));
  });

  it("accepts 64-bit integers and several targets per position", () => {
    const datum: Datum = {
      tokens: [1, 2],
      inputs: {
        target_tokens: { data: BigInt64Array.of(1n, 2n, 3n, 4n), shape: [2, 2] },
        weights: input([0, 0, 0, 1], [2, 2]),
      },
    };
    const { data } = prepareData(config, [datum], "cross_entropy");
    expect(data[0]?.targets).toEqual(Int32Array.of(1, 2, 3, 4));
    expect(data[0]?.targetsPerRow).toBe(2);
    expect(data[0]?.activeRows).toEqual(Uint8Array.of(0, 1));
  });

  it.each<[string, readonly Datum[], string]>([
    ["no data", [], "data is empty"],
    ["no tokens", [good, { ...good, tokens: [] }], "data[1].tokens is empty"],
    ["too many tokens", [{ ...good, tokens: [1, 1, 1, 1, 1] }], "data[0].tokens has 5 tokens"],
    ["a token out of range", [{ ...good, tokens: [1, 10, 1] }], "data[0].tokens[1] is 10"],
    [
      "a token that is not an integer",
      [{ ...good, tokens: [1, 0.5, 1] }],
      "data[0].tokens[1] is 0.5",
    ],
    ["no targets", [{ tokens: [1], inputs: {} }], "data[0].inputs.target_tokens is missing"],
    ["too few targets", [withInput("target_tokens", input([1, 2]))], "has shape [2]"],
    [
      "a target out of range",
      [withInput("target_tokens", input([1, -1, 2]))],
      "target_tokens[1] is -1",
    ],
    [
      "weights of another shape",
      [withInput("weights", input([1, 2]))],
      "data[0].inputs.weights has shape [2]",
    ],
    [
      "data that do not fill their shape",
      [withInput("weights", input([1], [3]))],
      "has 1 elements",
    ],
    ["NaN", [withInput("weights", input([1, NaN, 1]))], "weights[1] is NaN"],
    ["infinity", [withInput("weights", input([1, 1, Infinity]))], "weights[2] is Infinity"],
    [
      "an input that the loss does not read",
      [withInput("mask", input([1, 1, 1]))],
      "data[0].inputs.mask",
    ],
  ])("refuses %s, naming datum and field", (_, data, message) => {
    expect(refusal(data)).toContain(message);
  });

  it("refuses losses and settings that do not exist", () => {
    expect(refusal([good], "mse")).toContain(
      'lossFn "mse" does not exist; use one of cross_entropy',
    );
    expect(refusal([good], "cross_entropy", { beta: 1 })).toContain("it takes none");
    expect(refusal([reinforcement], "ppo", { epsilon: 0.2 })).toContain(
      "it knows clip_low_threshold and clip_high_threshold",
    );
    expect(refusal([reinforcement], "dro", { beta: NaN })).toContain("must be a finite number");
    expect(refusal([reinforcement], "cispo", { clip_low_threshold: 9 })).toContain("is above");
    expect(refusal([good], "constructor")).toContain("does not exist");
  });

  it("refuses several targets per position for losses without support", () => {
    const many = withInput("target_tokens", input([1, 2, 3, 4], [2, 2]), reinforcement);
    expect(refusal([many], "ppo")).toContain("ppo on 2 tokens needs [2]");
  });
});
