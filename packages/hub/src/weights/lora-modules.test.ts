import { describe, expect, it } from "vitest";
import { loraModules, targetsOfFlags } from "./lora-modules.js";
import { parseModelConfig } from "./model-config.js";

const nothing = { trainAttn: false, trainMlp: false, trainUnembed: false };

/** How many parameters per unit of rank the matrices of one flag have. */
function perRank(config: object, flag: keyof typeof nothing): number {
  const modules = loraModules(
    parseModelConfig(config),
    targetsOfFlags({ ...nothing, [flag]: true }),
  );
  return modules.reduce((sum, { inFeatures, outFeatures }) => sum + inFeatures + outFeatures, 0);
}

function qwen(
  hidden: number,
  layers: number,
  ffn: number,
  heads: number,
  keys: number,
  values: number,
) {
  return {
    architectures: ["Qwen3_5ForCausalLM"],
    model_type: "qwen3_5_text",
    vocab_size: 248_320,
    hidden_size: hidden,
    intermediate_size: ffn,
    num_hidden_layers: layers,
    num_attention_heads: heads,
    num_key_value_heads: keys,
    head_dim: 256,
    linear_num_key_heads: 16,
    linear_num_value_heads: values,
    max_position_embeddings: 4096,
  };
}

describe("matrices that carry adapters", () => {
  it.each([
    ["4B", qwen(2560, 32, 9216, 16, 4, 32), 1_130_496, 897_024, 250_880],
    ["9B", qwen(4096, 32, 12_288, 16, 4, 32), 1_572_864, 1_130_496, 252_416],
    ["27B", qwen(5120, 64, 17_408, 24, 4, 48), 4_325_376, 2_965_504, 253_440],
  ])(
    "of Qwen3.5-%s are as many as the service counts",
    (_, config, mlp, attention, unembedding) => {
      expect(perRank(config, "trainMlp")).toBe(mlp);
      expect(perRank(config, "trainAttn")).toBe(attention);
      expect(perRank(config, "trainUnembed")).toBe(unembedding);
    },
  );
});
