import { describe, expect, it } from "vitest";
import { parseModelConfig } from "@tinker-ts/hub/weights";
import { estimateMemory, planMemory, refuseSwapping } from "./memory-plan.js";

/** The shape of Qwen3 0.6B. */
const config = parseModelConfig({
  architectures: ["Qwen3ForCausalLM"],
  model_type: "qwen3",
  vocab_size: 151_936,
  hidden_size: 1024,
  intermediate_size: 3072,
  num_hidden_layers: 28,
  num_attention_heads: 16,
  num_key_value_heads: 8,
  head_dim: 128,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 8192,
  tie_word_embeddings: true,
});

describe("the estimate of a model's memory", () => {
  it("counts the weights that are held", () => {
    const parameters = 596_049_920;
    expect(estimateMemory(config).weightBytes).toBe(4 * parameters);
    const { weightBytes } = estimateMemory(config, { weights: "int8" });
    // A byte each, another one for embeddings, and some scales.
    expect(weightBytes / (parameters + 151_936 * 1024)).toBeGreaterThan(1);
    expect(weightBytes / (parameters + 151_936 * 1024)).toBeLessThan(1.01);
  });

  it("counts matrices with short rows in 32 bits", () => {
    const narrow = {
      ...config,
      hiddenSize: 64,
      intermediateSize: 64,
      heads: 1,
      kvHeads: 1,
      headDim: 64,
    };
    const { weightBytes } = estimateMemory(narrow, { weights: "int8" });
    expect(weightBytes).toBe(estimateMemory(narrow).weightBytes);
  });

  it("grows with training and with the rank of the adapter", () => {
    for (const weights of ["f32", "int8"] as const) {
      const small = estimateMemory(config, { weights, rank: 8 });
      const large = estimateMemory(config, { weights, rank: 64 });
      expect(small.weightBytes).toBeLessThan(small.samplingBytes);
      expect(small.trainingBytes).toBeLessThan(small.bothBytes);
      expect(small.samplingBytes).toBeLessThan(small.bothBytes);
      expect(large.trainingBytes).toBeGreaterThan(small.trainingBytes);
    }
  });

  it("counts the largest sampler program several times, and other int8 layers once", () => {
    const layerBytes = 15.8e6;
    const more = (from: number, to: number): number => {
      const [few, many] = [from, to].map((layers) =>
        estimateMemory({ ...config, layers }, { weights: "int8", rank: 1 }),
      );
      const grown = (many?.samplingBytes ?? NaN) - (few?.samplingBytes ?? NaN);
      return grown / (to - from) / layerBytes;
    };
    // Eight layers are one program, nine are one of five and one of four.
    expect(more(4, 8)).toBeGreaterThan(3);
    expect(more(8, 9)).toBeLessThan(0);
    expect(more(8, 64)).toBeLessThan(1.5);
  });
});

describe("a model that does not fit", () => {
  const smaller = { weights: "int8", weightBytes: 700e6 };

  it("is refused with a suggestion that fits", () => {
    expect(() => planMemory(2e9, 2.4e9, 0, smaller)).toThrow(
      /the model's weights take 2289 MB.*load it with weights: "int8", which take 668 MB/,
    );
  });

  it("gets no suggestion that would not fit either", () => {
    expect(() => planMemory(0.5e9, 2.4e9, 0, smaller)).toThrow(/choose a smaller model/);
  });

  it("is refused before the machine swaps, with a suggestion that fits", () => {
    const what = "the model's weights take";
    expect(() => refuseSwapping(what, 2.4e9, 1e9, smaller)).toThrow(
      /take 2289 MB, but the machine has 954 MB left; end other programs, or load it with weights: "int8", which take 668 MB/,
    );
    expect(() => refuseSwapping(what, 2.4e9, 0.5e9, smaller)).toThrow(/choose a smaller model/);
    expect(() => refuseSwapping(what, 2.4e9, 2.4e9, smaller)).not.toThrow();
  });
});
