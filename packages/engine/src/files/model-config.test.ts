import { describe, expect, it } from "vitest";
import { readJsonObject, type JsonObject } from "@tinker-ts/hub/files";
import { engineErrorOf } from "../../test/support/expect-engine-error.js";
import { fixture } from "../../test/support/fixtures.js";
import { parseModelConfig } from "./model-config.js";

// The three published families, as their config.json files stand on the hub (version 4 spelling).
const llama32 = {
  architectures: ["LlamaForCausalLM"],
  attention_bias: false,
  bos_token_id: 128000,
  eos_token_id: [128001, 128008, 128009],
  head_dim: 64,
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 8192,
  max_position_embeddings: 131072,
  mlp_bias: false,
  model_type: "llama",
  num_attention_heads: 32,
  num_hidden_layers: 16,
  num_key_value_heads: 8,
  pretraining_tp: 1,
  rms_norm_eps: 1e-5,
  rope_scaling: {
    factor: 32.0,
    high_freq_factor: 4.0,
    low_freq_factor: 1.0,
    original_max_position_embeddings: 8192,
    rope_type: "llama3",
  },
  rope_theta: 500000.0,
  tie_word_embeddings: true,
  torch_dtype: "bfloat16",
  vocab_size: 128256,
};

const qwen25 = {
  architectures: ["Qwen2ForCausalLM"],
  bos_token_id: 151643,
  eos_token_id: 151645,
  hidden_act: "silu",
  hidden_size: 896,
  intermediate_size: 4864,
  max_position_embeddings: 32768,
  max_window_layers: 21,
  model_type: "qwen2",
  num_attention_heads: 14,
  num_hidden_layers: 24,
  num_key_value_heads: 2,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000.0,
  sliding_window: 32768,
  tie_word_embeddings: true,
  use_sliding_window: false,
  vocab_size: 151936,
};

const qwen3 = {
  ...qwen25,
  architectures: ["Qwen3ForCausalLM"],
  attention_bias: false,
  head_dim: 128,
  hidden_size: 1024,
  intermediate_size: 3072,
  max_position_embeddings: 40960,
  max_window_layers: 28,
  model_type: "qwen3",
  num_attention_heads: 16,
  num_hidden_layers: 28,
  num_key_value_heads: 8,
  rope_scaling: null,
  sliding_window: null,
};

async function fixtureConfig(name: string): Promise<JsonObject> {
  return readJsonObject(fixture(`${name}/model/config.json`));
}

describe("supported models", () => {
  it("reads Llama 3.2 with its stretched rotation and tied embeddings", () => {
    expect(parseModelConfig(llama32)).toEqual({
      architecture: "llama",
      vocabSize: 128256,
      hiddenSize: 2048,
      intermediateSize: 8192,
      layers: 16,
      heads: 32,
      kvHeads: 8,
      headDim: 64,
      normEpsilon: 1e-5,
      rope: {
        theta: 500000,
        scaling: {
          kind: "llama3",
          factor: 32,
          lowFrequencyFactor: 1,
          highFrequencyFactor: 4,
          originalContextLength: 8192,
        },
      },
      contextLength: 131072,
      tiedEmbeddings: true,
      qkvBias: false,
      outputBias: false,
      mlpBias: false,
      qkNorm: false,
      bosTokenId: 128000,
      eosTokenIds: [128001, 128008, 128009],
    });
  });

  it("reads Qwen2.5 with biases and a head size that follows from the hidden size", () => {
    expect(parseModelConfig(qwen25)).toMatchObject({
      architecture: "qwen2",
      headDim: 64,
      qkvBias: true,
      qkNorm: false,
      rope: { theta: 1000000, scaling: null },
      eosTokenIds: [151645],
    });
  });

  it("reads biases where the family has them", () => {
    const biases = { attention_bias: true, mlp_bias: true };
    const all = { qkvBias: true, outputBias: true, mlpBias: true };
    expect(parseModelConfig({ ...llama32, ...biases })).toMatchObject(all);
    expect(parseModelConfig({ ...qwen3, ...biases })).toMatchObject({ ...all, mlpBias: false });
    const fixed = { qkvBias: true, outputBias: false, mlpBias: false };
    expect(parseModelConfig({ ...qwen25, ...biases })).toMatchObject(fixed);
  });

  it("reads Qwen3 with head norms and a head size of its own", () => {
    const config = parseModelConfig(qwen3);
    expect(config).toMatchObject({
      architecture: "qwen3",
      headDim: 128,
      qkNorm: true,
      qkvBias: false,
    });
    expect(parseModelConfig({ ...qwen3, head_dim: undefined }).headDim).toBe(128);
  });

  it("reads the spelling of transformers 5", async () => {
    const llama = parseModelConfig(await fixtureConfig("llama"));
    expect(llama.rope).toEqual({
      theta: 500000,
      scaling: {
        kind: "llama3",
        factor: 8,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalContextLength: 64,
      },
    });
    const qwen = parseModelConfig(await fixtureConfig("qwen3"));
    expect(qwen).toMatchObject({
      rope: { theta: 1000000, scaling: null },
      bosTokenId: null,
      eosTokenIds: [],
    });
  });

  it("takes the old name `type` of a scaling's kind", () => {
    const { rope_type: kind, ...rest } = llama32.rope_scaling;
    const config = parseModelConfig({ ...llama32, rope_scaling: { ...rest, type: kind } });
    expect(config.rope).toEqual(parseModelConfig(llama32).rope);
  });

  it("prefers the end tokens of generation_config.json", () => {
    const generation = { eos_token_id: [151645, 151643] };
    expect(parseModelConfig(qwen25, generation).eosTokenIds).toEqual([151645, 151643]);
    expect(parseModelConfig(qwen25, { eos_token_id: null }).eosTokenIds).toEqual([151645]);
  });

  it("fills in what a file may leave out", () => {
    const { num_key_value_heads: _, tie_word_embeddings: __, rope_theta: ___, ...rest } = qwen25;
    expect(parseModelConfig(rest)).toMatchObject({
      kvHeads: 14,
      tiedEmbeddings: false,
      rope: { theta: 10000, scaling: null },
    });
    expect(parseModelConfig({ ...rest, architectures: undefined }).architecture).toBe("qwen2");
  });

  it("accepts a sliding window that no sequence can reach", () => {
    const windowed = { ...qwen25, use_sliding_window: true };
    expect(parseModelConfig(windowed).contextLength).toBe(32768);
    const above = { ...windowed, sliding_window: 4096, max_window_layers: 24 };
    expect(parseModelConfig(above).layers).toBe(24);
    const none = { ...windowed, sliding_window: null };
    expect(parseModelConfig(none).layers).toBe(24);
  });
});

describe("models that are refused by name", () => {
  const scaling = (rope: object) => ({
    ...llama32,
    rope_scaling: { ...llama32.rope_scaling, ...rope },
  });
  const cases: [what: string, config: object, words: string[]][] = [
    [
      "another architecture",
      { ...llama32, architectures: ["MistralForCausalLM"] },
      ["MistralForCausalLM", "LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"],
    ],
    [
      "a classifier",
      { ...qwen3, architectures: ["Qwen3ForSequenceClassification"] },
      ["Qwen3ForSequenceClassification"],
    ],
    [
      "no architecture",
      { ...llama32, architectures: undefined, model_type: "gpt2" },
      ["architectures", "is missing"],
    ],
    [
      "contradicting names",
      { ...llama32, model_type: "qwen2" },
      ["model_type", "LlamaForCausalLM"],
    ],
    ["a mixture of experts", { ...qwen3, num_experts: 128 }, ["num_experts", "128"]],
    [
      "quantized weights",
      { ...llama32, quantization_config: { quant_method: "gptq" } },
      ["quantization_config", "gptq", "BF16"],
    ],
    ["vision", { ...qwen25, vision_config: {} }, ["vision_config"]],
    ["a composite model", { ...qwen25, text_config: {} }, ["text_config"]],
    ["another activation", { ...llama32, hidden_act: "gelu" }, ["hidden_act", "gelu", "silu"]],
    ["yarn", scaling({ rope_type: "yarn" }), ["rope_type", "yarn", "llama3"]],
    [
      "dynamic scaling of old",
      { ...llama32, rope_scaling: { type: "dynamic", factor: 2 } },
      ["type", "dynamic"],
    ],
    [
      "partial rotation",
      { ...llama32, partial_rotary_factor: 0.5 },
      ["partial_rotary_factor", "0.5"],
    ],
    [
      "rotation per layer type",
      { ...llama32, rope_scaling: null, rope_parameters: { full_attention: {} } },
      ["full_attention"],
    ],
    ["a scaling without its factor", scaling({ factor: undefined }), ["factor", "is missing"]],
    ["a scaling without a band", scaling({ high_freq_factor: 1 }), ["high_freq_factor"]],
    [
      "a sliding window in use",
      { ...qwen25, use_sliding_window: true, sliding_window: 4096 },
      ["use_sliding_window", "32768"],
    ],
    [
      "sliding layers",
      { ...qwen3, sliding_window: 4096, layer_types: ["full_attention", "sliding_attention"] },
      ["layer_types"],
    ],
    ["other kinds of layers", { ...qwen3, layer_types: ["linear_attention"] }, ["layer_types"]],
    ["a missing size", { ...llama32, hidden_size: undefined }, ["hidden_size", "is missing"]],
    ["a size that is no number", { ...llama32, vocab_size: "128256" }, ["vocab_size", '"128256"']],
    [
      "heads that do not share evenly",
      { ...llama32, num_key_value_heads: 3 },
      ["num_key_value_heads", "32"],
    ],
    ["an odd head size", { ...llama32, head_dim: 65 }, ["head_dim", "even"]],
    [
      "a head size that does not follow",
      { ...qwen25, num_attention_heads: 10 },
      ["head_dim", "is missing"],
    ],
    [
      "an end token beyond the vocabulary",
      { ...qwen25, eos_token_id: 151936 },
      ["eos_token_id", "151935"],
    ],
  ];

  it.each(cases)("%s", async (_, config, words) => {
    const message = await engineErrorOf("unsupported_model", () => parseModelConfig(config));
    for (const word of ["config.json", ...words]) expect(message).toContain(word);
  });

  it("something that is no object", async () => {
    await engineErrorOf("unsupported_model", () => parseModelConfig(null));
    const message = await engineErrorOf("unsupported_model", () => parseModelConfig(qwen25, []));
    expect(message).toContain("generation_config.json");
  });
});
