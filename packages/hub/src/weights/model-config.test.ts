import { describe, expect, it } from "vitest";
import { readJsonObject, type JsonObject } from "../files/json.js";
import { engineErrorOf } from "../../test/support/expect-engine-error.js";
import { modelFixture } from "../../test/support/fixtures.js";
import { parseModelConfig } from "./model-config.js";

// The published families, as their config.json files stand on the hub (version 4 spelling).
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

const gemma3 = {
  architectures: ["Gemma3ForCausalLM"],
  attention_bias: false,
  attn_logit_softcapping: null,
  bos_token_id: 2,
  cache_implementation: "hybrid",
  eos_token_id: [1, 106],
  final_logit_softcapping: null,
  head_dim: 256,
  hidden_activation: "gelu_pytorch_tanh",
  hidden_size: 1152,
  intermediate_size: 6912,
  max_position_embeddings: 32768,
  model_type: "gemma3_text",
  num_attention_heads: 4,
  num_hidden_layers: 26,
  num_key_value_heads: 1,
  query_pre_attn_scalar: 256,
  rms_norm_eps: 1e-6,
  rope_local_base_freq: 10000,
  rope_scaling: null,
  rope_theta: 1000000,
  sliding_window: 512,
  sliding_window_pattern: 6,
  vocab_size: 262144,
};

const mistral = {
  architectures: ["MistralForCausalLM"],
  bos_token_id: 1,
  eos_token_id: 2,
  hidden_act: "silu",
  hidden_size: 4096,
  intermediate_size: 14336,
  max_position_embeddings: 32768,
  model_type: "mistral",
  num_attention_heads: 32,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  sliding_window: 4096,
  tie_word_embeddings: false,
  vocab_size: 32000,
};

const qwen35 = {
  ...qwen3,
  architectures: ["Qwen3_5ForCausalLM"],
  full_attention_interval: 4,
  head_dim: 256,
  linear_conv_kernel_dim: 4,
  linear_key_head_dim: 128,
  linear_num_key_heads: 16,
  linear_num_value_heads: 32,
  linear_value_head_dim: 128,
  model_type: "qwen3_5_text",
  num_hidden_layers: 8,
  rope_parameters: { rope_type: "default", rope_theta: 1e7, mrope_section: [11, 11, 10] },
  rope_theta: undefined,
};

const granite4 = {
  architectures: ["GraniteMoeHybridForCausalLM"],
  attention_multiplier: 0.015625,
  embedding_multiplier: 12,
  hidden_size: 2048,
  intermediate_size: 8192,
  layer_types: ["mamba", "attention"],
  logits_scaling: 8,
  mamba_d_conv: 4,
  mamba_d_head: 64,
  mamba_d_state: 128,
  mamba_expand: 2,
  mamba_n_groups: 1,
  mamba_n_heads: 64,
  max_position_embeddings: 131_072,
  model_type: "granitemoehybrid",
  num_attention_heads: 32,
  num_hidden_layers: 2,
  num_key_value_heads: 8,
  num_local_experts: 0,
  position_embedding_type: "nope",
  residual_multiplier: 0.22,
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  shared_intermediate_size: 8192,
  tie_word_embeddings: true,
  vocab_size: 100_352,
};

const olmo2 = {
  architectures: ["Olmo2ForCausalLM"],
  attention_bias: false,
  eos_token_id: 100257,
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 8192,
  max_position_embeddings: 4096,
  model_type: "olmo2",
  num_attention_heads: 16,
  num_hidden_layers: 16,
  num_key_value_heads: 16,
  rms_norm_eps: 1e-6,
  rope_scaling: null,
  rope_theta: 500000,
  tie_word_embeddings: false,
  vocab_size: 100352,
};

const smollm3 = {
  architectures: ["SmolLM3ForCausalLM"],
  attention_bias: false,
  eos_token_id: 128012,
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 11008,
  max_position_embeddings: 65536,
  max_window_layers: 28,
  mlp_bias: false,
  model_type: "smollm3",
  no_rope_layer_interval: 4,
  num_attention_heads: 16,
  num_hidden_layers: 36,
  num_key_value_heads: 4,
  rms_norm_eps: 1e-6,
  rope_theta: 5000000,
  sliding_window: null,
  use_sliding_window: false,
  vocab_size: 128256,
};

const granite = {
  architectures: ["GraniteForCausalLM"],
  attention_bias: false,
  attention_multiplier: 0.015625,
  bos_token_id: 0,
  embedding_multiplier: 12,
  eos_token_id: 0,
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 8192,
  logits_scaling: 8,
  max_position_embeddings: 131072,
  mlp_bias: false,
  model_type: "granite",
  num_attention_heads: 32,
  num_hidden_layers: 40,
  num_key_value_heads: 8,
  residual_multiplier: 0.22,
  rms_norm_eps: 1e-5,
  rope_scaling: null,
  rope_theta: 10000000,
  tie_word_embeddings: true,
  vocab_size: 49155,
};

const phi4mini = {
  architectures: ["Phi3ForCausalLM"],
  attention_bias: false,
  bos_token_id: 199999,
  eos_token_id: 199999,
  full_attn_mod: 1,
  hidden_act: "silu",
  hidden_size: 3072,
  intermediate_size: 8192,
  lm_head_bias: false,
  max_position_embeddings: 131072,
  mlp_bias: false,
  model_type: "phi3",
  num_attention_heads: 24,
  num_hidden_layers: 32,
  num_key_value_heads: 8,
  original_max_position_embeddings: 4096,
  partial_rotary_factor: 0.75,
  rms_norm_eps: 1e-5,
  rope_scaling: {
    long_factor: Array.from({ length: 48 }, (_, pair) => 1 + pair),
    short_factor: Array(48).fill(1),
    type: "longrope",
  },
  rope_theta: 10000,
  sliding_window: 262144,
  tie_word_embeddings: true,
  vocab_size: 200064,
};

function windowsOf(config: object): readonly (number | null)[] {
  return parseModelConfig(config).layerKinds?.map(({ window }) => window) ?? [];
}

async function fixtureConfig(name: string): Promise<JsonObject> {
  return readJsonObject(modelFixture(`${name}/model/config.json`));
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

  it("fills in defaults", () => {
    const { num_key_value_heads: _, tie_word_embeddings: __, rope_theta: ___, ...rest } = qwen25;
    expect(parseModelConfig(rest)).toMatchObject({
      kvHeads: 14,
      tiedEmbeddings: false,
      rope: { theta: 10000, scaling: null },
    });
    expect(parseModelConfig({ ...rest, architectures: undefined }).architecture).toBe("qwen2");
  });

  it("leaves out a sliding window that no sequence can leave", () => {
    const windowed = { ...qwen25, use_sliding_window: true };
    expect(parseModelConfig(windowed).layerKinds).toBeUndefined();
    const above = { ...windowed, sliding_window: 4096, max_window_layers: 24 };
    expect(parseModelConfig(above).layerKinds).toBeUndefined();
    const none = { ...windowed, sliding_window: null };
    expect(parseModelConfig(none).layerKinds).toBeUndefined();
  });

  it("gives the layers that a Qwen chooses a window", () => {
    const windowed = { ...qwen25, use_sliding_window: true, sliding_window: 4096 };
    expect(windowsOf(windowed).indexOf(4096)).toBe(21);
    expect(new Set(windowsOf(windowed).slice(21))).toEqual(new Set([4096]));
    const types = ["sliding_attention", ...Array(23).fill("full_attention")];
    expect(windowsOf({ ...windowed, layer_types: types }).slice(0, 3)).toEqual([4096, null, null]);
  });

  it("reads Gemma 3 with two rotations, norms around and windows in five of six layers", () => {
    const config = parseModelConfig(gemma3);
    expect(config).toMatchObject({
      architecture: "gemma3",
      headDim: 256,
      rope: { theta: 1000000, scaling: null },
      localRope: { theta: 10000, scaling: null },
      tiedEmbeddings: true,
      qkNorm: true,
      norms: "around",
      normsPlusOne: true,
      activation: "gelu",
      attentionScale: 1 / 16,
      embeddingScale: Math.sqrt(1152),
      eosTokenIds: [1, 106],
    });
    expect(config.layerKinds?.slice(3, 7)).toEqual([
      { window: 512, rotation: "localRope" },
      { window: 512, rotation: "localRope" },
      { window: null, rotation: "rope" },
      { window: 512, rotation: "localRope" },
    ]);
  });

  it("reads Gemma 3 alike in the spelling of transformers 5", () => {
    const {
      rope_theta: _,
      rope_local_base_freq: __,
      sliding_window_pattern: ___,
      ...rest
    } = gemma3;
    const types = Array.from({ length: 26 }, (____, layer) =>
      layer % 6 === 5 ? "full_attention" : "sliding_attention",
    );
    const rope = { rope_type: "default", rope_theta: 1000000 };
    const current = {
      ...rest,
      layer_types: types,
      rope_parameters: {
        full_attention: rope,
        sliding_attention: { ...rope, rope_theta: 10000 },
      },
    };
    expect(parseModelConfig(current)).toEqual(parseModelConfig(gemma3));
    const scaling = { factor: 8, rope_type: "linear" };
    const scaled = parseModelConfig({
      ...current,
      rope_parameters: { ...current.rope_parameters, full_attention: { ...rope, ...scaling } },
    });
    expect(scaled).toEqual(parseModelConfig({ ...gemma3, rope_scaling: scaling }));
    expect(scaled.rope).toEqual({ theta: 1000000, scaling: { kind: "linear", factor: 8 } });
    expect(scaled.localRope?.scaling).toBeNull();
  });

  it("reads Mistral with one window for all layers, or none", () => {
    expect(new Set(windowsOf(mistral))).toEqual(new Set([4096]));
    const { sliding_window: _, ...silent } = mistral;
    expect(new Set(windowsOf(silent))).toEqual(new Set([4096]));
    expect(parseModelConfig({ ...mistral, sliding_window: null }).layerKinds).toBeUndefined();
  });

  it("reads OLMo 2 with norms after its blocks and over all heads", () => {
    expect(parseModelConfig(olmo2)).toMatchObject({
      qkNorm: true,
      qkNormSpan: "all",
      norms: "after",
    });
    const { rms_norm_eps: _, ...silent } = olmo2;
    expect(parseModelConfig(silent).normEpsilon).toBe(1e-5);
  });

  it("reads SmolLM3 with layers that do not rotate", () => {
    const rotations = (config: object) =>
      parseModelConfig(config).layerKinds?.map(({ rotation }) => rotation);
    expect(rotations(smollm3)?.slice(2, 5)).toEqual(["rope", null, "rope"]);
    const flags = Array.from({ length: 36 }, (_, layer) => (layer === 1 ? 0 : 1));
    expect(rotations({ ...smollm3, no_rope_layers: flags })?.indexOf(null)).toBe(1);
    const windowed = { ...smollm3, use_sliding_window: true, sliding_window: 512 };
    expect(windowsOf(windowed).slice(2, 5)).toEqual([null, 512, null]);
    expect(parseModelConfig(smollm3).tiedEmbeddings).toBe(true);
  });

  it("reads Granite with its four multipliers", () => {
    expect(parseModelConfig({ ...granite, attention_bias: true, mlp_bias: true })).toMatchObject({
      attentionScale: 0.015625,
      embeddingScale: 12,
      residualScale: 0.22,
      logitScale: 1 / 8,
      qkvBias: true,
      mlpBias: true,
    });
  });

  it("reads Phi-4-mini with fused projections and a partial rotation of two lengths", () => {
    const config = parseModelConfig(phi4mini);
    expect(config).toMatchObject({
      fusedQkv: true,
      fusedGateUp: true,
      qkvBias: false,
      mlpBias: false,
    });
    expect(config.layerKinds).toBeUndefined();
    expect(config.rope).toMatchObject({
      rotaryDim: 96,
      scaling: {
        kind: "longrope",
        originalContextLength: 4096,
        attentionFactor: Math.sqrt(1 + Math.log(32) / Math.log(4096)),
      },
    });
    const { rope_scaling: scaling, partial_rotary_factor: factor, rope_theta: theta } = phi4mini;
    const { type, ...rest } = scaling;
    const current = {
      ...phi4mini,
      rope_scaling: undefined,
      partial_rotary_factor: undefined,
      rope_theta: undefined,
      rope_parameters: {
        ...rest,
        rope_type: type,
        rope_theta: theta,
        partial_rotary_factor: factor,
      },
    };
    expect(parseModelConfig(current)).toEqual(config);
    const first = { ...phi4mini, rope_scaling: { ...scaling, type: "su" } };
    expect(parseModelConfig(first)).toEqual(config);
  });

  it("reads OLMo 3 with windows that rotate plainly and a scaling of the other layers", () => {
    const yarn = {
      rope_type: "yarn",
      factor: 8,
      beta_fast: 32,
      beta_slow: 1,
      original_max_position_embeddings: 8192,
      attention_factor: 1.2079441541679836,
    };
    const olmo3 = {
      ...olmo2,
      architectures: ["Olmo3ForCausalLM"],
      model_type: "olmo3",
      sliding_window: 16,
    };
    const old = parseModelConfig({ ...olmo3, rope_scaling: yarn });
    expect(old.localRope).toEqual({ theta: 500_000, scaling: null });
    expect(old.rope.scaling).toMatchObject({ kind: "yarn", factor: 8, truncate: true });
    expect(old.layerKinds?.slice(2, 5)).toEqual([
      { window: 16, rotation: "localRope" },
      { window: null, rotation: "rope" },
      { window: 16, rotation: "localRope" },
    ]);
    const base = { rope_theta: 500_000 };
    const parameters = {
      full_attention: { ...yarn, ...base },
      sliding_attention: { ...base, rope_type: "default" },
    };
    const current = { ...olmo3, rope_theta: undefined, rope_parameters: parameters };
    expect(parseModelConfig(current)).toEqual(old);
  });

  it("computes yarn's growth from its scales", () => {
    const yarn = { rope_type: "yarn", factor: 16, original_max_position_embeddings: 1024 };
    const factorOf = (more: object) => {
      const config = parseModelConfig({ ...llama32, rope_scaling: { ...yarn, ...more } });
      const { scaling } = config.rope;
      return scaling?.kind === "yarn" ? scaling.attentionFactor : NaN;
    };
    expect(factorOf({})).toBeCloseTo(0.1 * Math.log(16) + 1, 12);
    expect(factorOf({ mscale: 1, mscale_all_dim: 1 })).toBe(1);
    expect(factorOf({ mscale: 0.7, mscale_all_dim: 0 })).toBeCloseTo(0.1 * Math.log(16) + 1, 12);
    expect(factorOf({ attention_factor: 1.5, mscale: 2, mscale_all_dim: 1 })).toBe(1.5);
  });

  it("reads the text of Ministral 3 with queries that grow, out of a model with vision", () => {
    const parameters = {
      rope_type: "yarn",
      rope_theta: 1e6,
      factor: 16,
      original_max_position_embeddings: 16_384,
      mscale: 1,
      mscale_all_dim: 1,
      llama_4_scaling_beta: 0.1,
    };
    const text = {
      ...mistral,
      architectures: undefined,
      model_type: "ministral3",
      head_dim: 128,
      sliding_window: null,
      rope_parameters: parameters,
      tie_word_embeddings: undefined,
    };
    const config = parseModelConfig({
      architectures: ["Mistral3ForConditionalGeneration"],
      model_type: "mistral3",
      text_config: text,
      tie_word_embeddings: true,
      vision_config: { model_type: "pixtral" },
    });
    const expected = { architecture: "ministral3", headDim: 128, tiedEmbeddings: true };
    expect(config).toMatchObject(expected);
    expect(config.rope.queryGrowth).toEqual({ weight: 0.1, length: 16_384 });
    expect(config.rope.scaling).toMatchObject({ attentionFactor: 1 });
  });

  it("reads Qwen3.5 with layers of two kinds, gates and a quarter of each head rotating", () => {
    const config = parseModelConfig(qwen35);
    expect(config.layerKinds?.slice(2, 5)).toEqual([
      { mixer: "deltaRule", window: null, rotation: null },
      { window: null, rotation: "rope" },
      { mixer: "deltaRule", window: null, rotation: null },
    ]);
    const deltaRule = { keyHeads: 16, valueHeads: 32, keyDim: 128, valueDim: 128, kernel: 4 };
    expect(config).toMatchObject({ gatedAttention: true, normsPlusOne: true, deltaRule });
    expect(config.rope.rotaryDim).toBe(64);
    const text = { ...qwen35, architectures: undefined };
    const whole = { architectures: ["Qwen3_5ForConditionalGeneration"], model_type: "qwen3_5" };
    expect(parseModelConfig({ ...whole, text_config: text, vision_config: {} })).toEqual(config);
  });

  it("reads LFM2 in the names of its first files", () => {
    const first = {
      architectures: ["Lfm2ForCausalLM"],
      model_type: "lfm2",
      block_auto_adjust_ff_dim: true,
      block_ff_dim: 6656,
      block_ffn_dim_multiplier: 1,
      block_multiple_of: 256,
      conv_L_cache: 3,
      conv_bias: false,
      full_attn_idxs: [2, 5],
      hidden_size: 1024,
      max_position_embeddings: 128_000,
      norm_eps: 1e-5,
      num_attention_heads: 16,
      num_hidden_layers: 6,
      num_key_value_heads: 8,
      rope_theta: 1e6,
      tie_embedding: true,
      vocab_size: 65_536,
    };
    const config = parseModelConfig(first);
    expect(config).toMatchObject({
      intermediateSize: 4608,
      tiedEmbeddings: true,
      normEpsilon: 1e-5,
      convolution: { kernel: 3, bias: false },
    });
    const mixers = config.layerKinds?.map(({ mixer = "attention" }) => mixer);
    const three = ["convolution", "convolution", "attention"];
    expect(mixers).toEqual([...three, ...three]);
    const plain = { ...first, block_auto_adjust_ff_dim: false, block_ff_dim: 4608 };
    expect(parseModelConfig(plain)).toEqual(config);
  });

  it("reads Granite 4 H with Mamba layers, without rotation and with bounds of the time step", () => {
    const config = parseModelConfig(granite4);
    expect(config).toMatchObject({ architecture: "granite4", intermediateSize: 8192 });
    expect(config.fusedGateUp).toBe(true);
    expect(config.layerKinds).toEqual([
      { mixer: "mamba", window: null, rotation: null },
      { window: null, rotation: null },
    ]);
    expect(config.mamba).toMatchObject({ heads: 64, headDim: 64, timeStep: [0, Infinity] });
    const named = { ...granite4, layer_types: ["linear_attention", "full_attention"] };
    const bounds = { time_step_limit: [0, { __float__: "Infinity" }] };
    expect(parseModelConfig({ ...named, ...bounds })).toEqual(config);
    const rotating = parseModelConfig({ ...granite4, position_embedding_type: "rope" });
    expect(rotating.layerKinds?.[1]?.rotation).toBe("rope");
  });

  it("takes heads of an odd size where none rotates as a whole", () => {
    const small = { hidden_size: 60, num_attention_heads: 4, num_key_value_heads: 2 };
    const heads = { ...small, mamba_n_heads: 4, mamba_d_head: "auto" };
    expect(parseModelConfig({ ...granite4, ...heads }).headDim).toBe(15);
    const config = parseModelConfig({ ...qwen35, head_dim: 15, partial_rotary_factor: 0.5 });
    expect(config).toMatchObject({ headDim: 15, rope: { rotaryDim: 7 } });
  });

  it("reads text inside another model that does not name its kind, nor its class", () => {
    const { model_type: _, architectures: __, ...text } = mistral;
    const whole = { model_type: "mistral3", text_config: text, tie_word_embeddings: false };
    expect(parseModelConfig(whole)).toEqual(parseModelConfig(mistral));
  });

  it("ties embeddings of text inside another model like the whole model", () => {
    const tying = (whole: boolean | undefined, text: boolean | undefined): boolean =>
      parseModelConfig({
        model_type: "mistral3",
        tie_word_embeddings: whole,
        text_config: { ...mistral, tie_word_embeddings: text },
      }).tiedEmbeddings;
    expect([tying(true, false), tying(false, true), tying(undefined, true)]).toEqual([
      true,
      false,
      true,
    ]);
  });

  it("leaves out special tokens beyond the vocabulary", () => {
    const beyond = { ...qwen25, eos_token_id: [151936, 7], bos_token_id: 999999 };
    expect(parseModelConfig(beyond)).toMatchObject({ eosTokenIds: [7], bosTokenId: null });
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
      { ...llama32, architectures: ["Gemma2ForCausalLM"] },
      ["Gemma2ForCausalLM", "LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"],
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
    ["a model of several parts", { ...qwen25, text_config: {} }, ["architectures", "Qwen3_5"]],
    ["another activation", { ...llama32, hidden_act: "gelu" }, ["hidden_act", "gelu", "silu"]],
    [
      "a Granite 4 with experts",
      { ...granite4, num_local_experts: 64 },
      ["num_local_experts", "mixtures of experts", "ibm-granite/granite-4.0-350m"],
    ],
    [
      "a Qwen3.5 with experts",
      { architectures: ["Qwen3_5MoeForConditionalGeneration"], text_config: {} },
      ["mixtures of experts", "Qwen/Qwen3.5-0.8B"],
    ],
    [
      "a Qwen3 with experts",
      { ...qwen3, architectures: ["Qwen3MoeForCausalLM"] },
      ["mixtures of experts", "Qwen/Qwen3-0.6B"],
    ],
    ["gpt-oss", { architectures: ["GptOssForCausalLM"] }, ["MXFP4", "Qwen3.5"]],
    ["Gemma 4", { architectures: ["Gemma4ForConditionalGeneration"] }, ["Gemma 4", "gemma-3-1b"]],
    ["Nemotron 3", { architectures: ["NemotronHForCausalLM"] }, ["Nemotron", "Granite 4 H"]],
    ["DeepSeek V3", { architectures: ["DeepseekV3ForCausalLM"] }, ["latent attention"]],
    [
      "a key head with a part of a value head",
      { ...qwen35, linear_num_value_heads: 24 },
      ["linear_num_value_heads", "multiple of the 16 key heads"],
    ],
    [
      "heads of Mamba of another width",
      { ...granite4, mamba_n_heads: 48 },
      ["mamba_n_heads", "width of 4096"],
    ],
    [
      "quantized files of a model of several parts",
      {
        architectures: ["Mistral3ForConditionalGeneration"],
        quantization_config: { quant_method: "fp8" },
        text_config: { ...mistral, model_type: "ministral3" },
      },
      ["quantization_config", '"-BF16"'],
    ],
    ...[
      ["gpt_oss", "MXFP4"],
      ["qwen3_moe", "Qwen/Qwen3-0.6B"],
      ["qwen3_5_moe_text", "Qwen/Qwen3.5-0.8B"],
      ["gemma4", "Gemma 4"],
      ["gemma3", "google/gemma-3-270m"],
      ["nemotron_h", "Granite 4 H"],
      ["deepseek_v3", "latent attention"],
      ["minicpm3", "openbmb/MiniCPM5-1B"],
      ["llava", "Qwen3.5"],
      ["qwen2_5_vl", "Qwen3.5"],
    ].map(([type = "", word = ""]): [string, object, string[]] => [
      `${type} without the name of its class`,
      { model_type: type, text_config: {} },
      ["model_type", word],
    ]),
    [
      "a MiniCPM 3",
      { architectures: ["MiniCPM3ForCausalLM"] },
      ["latent attention", "openbmb/MiniCPM5-1B"],
    ],
    ["a LLaVA", { architectures: ["LlavaForConditionalGeneration"] }, ["vision", "Mistral 3"]],
    [
      "another activation beside the delta rule",
      { ...qwen35, hidden_act: "gelu_pytorch_tanh" },
      ["hidden_act", "silu"],
    ],
    [
      "another activation beside Mamba",
      { ...granite4, hidden_act: "gelu_pytorch_tanh" },
      ["hidden_act", "silu"],
    ],
    [
      "an odd part of a head that is all of it",
      { ...qwen35, head_dim: 15, partial_rotary_factor: 1 },
      ["head_dim", "even"],
    ],
    [
      "yarn between bounds that cross",
      scaling({ rope_type: "yarn", beta_fast: 1, beta_slow: 2 }),
      ["beta_fast", "at least beta_slow (2)"],
    ],
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
      "kinds of some layers only",
      { ...qwen3, sliding_window: 4096, layer_types: ["full_attention", "sliding_attention"] },
      ["layer_types", "28 layers"],
    ],
    ["other kinds of layers", { ...qwen3, layer_types: ["linear_attention"] }, ["layer_types"]],
    [
      "windows where a family has none",
      { ...llama32, layer_types: Array(16).fill("sliding_attention") },
      ["layer_types", "full attention"],
    ],
    [
      "two kinds of layers where a family has one",
      { ...mistral, layer_types: ["full_attention", ...Array(31).fill("sliding_attention")] },
      ["layer_types", "one kind"],
    ],
    ["no window at all", { ...mistral, sliding_window: 0 }, ["sliding_window", "0"]],
    ["soft caps on scores", { ...gemma3, attn_logit_softcapping: 50 }, ["attn_logit_softcapping"]],
    [
      "soft caps on logits",
      { ...gemma3, final_logit_softcapping: 30 },
      ["final_logit_softcapping"],
    ],
    [
      "sight of later tokens",
      { ...gemma3, use_bidirectional_attention: true },
      ["use_bidirectional_attention"],
    ],
    [
      "a Gemma with vision",
      { architectures: ["Gemma3ForConditionalGeneration"], text_config: gemma3 },
      ["vision", "google/gemma-3-270m"],
    ],
    [
      "factors of another number",
      { ...phi4mini, rope_scaling: { ...phi4mini.rope_scaling, long_factor: [1, 2] } },
      ["long_factor", "list of 48 numbers"],
    ],
    [
      "rotation of more than a head",
      { ...phi4mini, partial_rotary_factor: 1.5 },
      ["partial_rotary_factor", "128"],
    ],
    [
      "rotation flags for some layers only",
      { ...smollm3, no_rope_layers: [1, 1, 1, 0] },
      ["no_rope_layers", "36 layers"],
    ],
    ["a multiplier of nothing", { ...granite, logits_scaling: 0 }, ["logits_scaling", "0"]],
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
    ["an end token that is none", { ...qwen25, eos_token_id: -1 }, ["eos_token_id", "-1"]],
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
