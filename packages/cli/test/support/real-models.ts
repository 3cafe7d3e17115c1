import type { Shapes } from "./model-headers.js";

/** The smallest public model of a family: its configuration, and which tensors its files have, by name. */
export interface RealModel {
  readonly name: string;
  /** The source of its sizes, and which of them have not been compared with the hub's file. */
  readonly source: string;
  readonly config: object;
  readonly tensors: Shapes;
  /** The expected description. */
  readonly expected: RegExp;
}

const layers = (count: number, of: (layer: number) => Shapes): Shapes =>
  Object.assign({}, ...Array.from({ length: count }, (_, layer) => of(layer)));

const named = (prefix: string, shapes: Shapes): Shapes =>
  Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [prefix + name, shape]));

const swiGlu = (hidden: number, width: number): Shapes => ({
  "mlp.gate_proj.weight": [width, hidden],
  "mlp.up_proj.weight": [width, hidden],
  "mlp.down_proj.weight": [hidden, width],
});

const attention = (hidden: number, queries: number, keys: number, output = queries): Shapes => ({
  "self_attn.q_proj.weight": [queries, hidden],
  "self_attn.k_proj.weight": [keys, hidden],
  "self_attn.v_proj.weight": [keys, hidden],
  "self_attn.o_proj.weight": [hidden, output],
});

const normsBefore = (hidden: number): Shapes => ({
  "input_layernorm.weight": [hidden],
  "post_attention_layernorm.weight": [hidden],
});

const qwen: RealModel = {
  name: "Qwen/Qwen3.5-0.8B",
  source:
    "config.json of revision 2fc06364, as a test of a public repository has it; vision sizes are made up",
  config: {
    architectures: ["Qwen3_5ForConditionalGeneration"],
    model_type: "qwen3_5",
    tie_word_embeddings: true,
    text_config: {
      attention_bias: false,
      attn_output_gate: true,
      full_attention_interval: 4,
      head_dim: 256,
      hidden_act: "silu",
      hidden_size: 1024,
      intermediate_size: 3584,
      layer_types: Array.from({ length: 24 }, (_, layer) =>
        layer % 4 === 3 ? "full_attention" : "linear_attention",
      ),
      linear_conv_kernel_dim: 4,
      linear_key_head_dim: 128,
      linear_num_key_heads: 16,
      linear_num_value_heads: 16,
      linear_value_head_dim: 128,
      max_position_embeddings: 262_144,
      mlp_only_layers: [],
      model_type: "qwen3_5_text",
      num_attention_heads: 8,
      num_hidden_layers: 24,
      num_key_value_heads: 2,
      rms_norm_eps: 1e-6,
      tie_word_embeddings: true,
      vocab_size: 248_320,
      rope_parameters: {
        mrope_interleaved: true,
        mrope_section: [11, 11, 10],
        rope_type: "default",
        rope_theta: 10_000_000,
        partial_rotary_factor: 0.25,
      },
    },
    vision_config: { depth: 12, hidden_size: 768, model_type: "qwen3_5" },
  },
  tensors: {
    "model.language_model.embed_tokens.weight": [248_320, 1024],
    "model.language_model.norm.weight": [1024],
    ...layers(24, (layer) =>
      named(`model.language_model.layers.${layer}.`, {
        ...normsBefore(1024),
        ...swiGlu(1024, 3584),
        ...(layer % 4 === 3
          ? {
              ...attention(1024, 2 * 8 * 256, 512, 2048),
              "self_attn.q_norm.weight": [256],
              "self_attn.k_norm.weight": [256],
            }
          : {
              "linear_attn.in_proj_qkv.weight": [3 * 2048, 1024],
              "linear_attn.in_proj_z.weight": [2048, 1024],
              "linear_attn.in_proj_b.weight": [16, 1024],
              "linear_attn.in_proj_a.weight": [16, 1024],
              "linear_attn.conv1d.weight": [3 * 2048, 1, 4],
              "linear_attn.dt_bias": [16],
              "linear_attn.A_log": [16],
              "linear_attn.norm.weight": [128],
              "linear_attn.out_proj.weight": [1024, 2048],
            }),
      }),
    ),
    "model.visual.patch_embed.proj.weight": [768, 3, 2, 16, 16],
    "model.visual.blocks.0.attn.qkv.weight": [2304, 768],
    "mtp.fc.weight": [1024, 2048],
  },
  expected:
    /^qwen3_5, 24 layers, 18 with the gated delta rule and 6 with attention; .* 3 of other parts, such as "(mtp|model\.visual)\./,
};

const lfm2Attention = new Set([2, 5, 8, 10, 12, 14]);
const lfm2: RealModel = {
  name: "LiquidAI/LFM2-350M",
  source:
    "config.json as a test of a public repository has it; not verified: tie_embedding, block_auto_adjust_ff_dim",
  config: {
    architectures: ["Lfm2ForCausalLM"],
    model_type: "lfm2",
    vocab_size: 65_536,
    hidden_size: 1024,
    num_hidden_layers: 16,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    max_position_embeddings: 128_000,
    norm_eps: 1e-5,
    conv_bias: false,
    conv_L_cache: 3,
    rope_theta: 1_000_000,
    full_attn_idxs: [...lfm2Attention],
    eos_token_id: 7,
    block_dim: 1024,
    block_ff_dim: 6656,
    block_auto_adjust_ff_dim: true,
    block_ffn_dim_multiplier: 1,
    block_multiple_of: 256,
    tie_embedding: true,
  },
  tensors: {
    "model.embed_tokens.weight": [65_536, 1024],
    "model.embedding_norm.weight": [1024],
    ...layers(16, (layer) =>
      named(`model.layers.${layer}.`, {
        "operator_norm.weight": [1024],
        "ffn_norm.weight": [1024],
        "feed_forward.w1.weight": [4608, 1024],
        "feed_forward.w3.weight": [4608, 1024],
        "feed_forward.w2.weight": [1024, 4608],
        ...(lfm2Attention.has(layer)
          ? {
              "self_attn.q_proj.weight": [1024, 1024],
              "self_attn.k_proj.weight": [512, 1024],
              "self_attn.v_proj.weight": [512, 1024],
              "self_attn.out_proj.weight": [1024, 1024],
              "self_attn.q_layernorm.weight": [64],
              "self_attn.k_layernorm.weight": [64],
            }
          : {
              "conv.in_proj.weight": [3072, 1024],
              "conv.conv.weight": [1024, 1, 3],
              "conv.out_proj.weight": [1024, 1024],
            }),
      }),
    ),
  },
  expected: /^lfm2, 16 layers, 10 with a short convolution and 6 with attention;/,
};

const graniteAttention = new Set([10, 13, 17, 27]);
const graniteCommon = {
  architectures: ["GraniteMoeHybridForCausalLM"],
  model_type: "granitemoehybrid",
  attention_bias: false,
  attention_multiplier: 0.015625,
  embedding_multiplier: 12,
  eos_token_id: 100_257,
  hidden_act: "silu",
  num_experts_per_tok: 0,
  num_key_value_heads: 4,
  num_local_experts: 0,
  rms_norm_eps: 1e-5,
  tie_word_embeddings: true,
  vocab_size: 100_352,
};
const graniteFeedForward = (hidden: number, width: number): Shapes => ({
  "shared_mlp.input_linear.weight": [2 * width, hidden],
  "shared_mlp.output_linear.weight": [hidden, width],
});
const graniteHybrid: RealModel = {
  name: "ibm-granite/granite-4.0-h-350m",
  source:
    "config.json as a test of a public repository has it; sizes compared with a public GGUF file",
  config: {
    ...graniteCommon,
    hidden_size: 768,
    intermediate_size: 2048,
    shared_intermediate_size: 2048,
    logits_scaling: 3,
    layer_types: Array.from({ length: 32 }, (_, layer) =>
      graniteAttention.has(layer) ? "attention" : "mamba",
    ),
    mamba_conv_bias: true,
    mamba_d_conv: 4,
    mamba_d_head: 32,
    mamba_d_state: 128,
    mamba_expand: 2,
    mamba_n_groups: 1,
    mamba_n_heads: 48,
    mamba_proj_bias: false,
    max_position_embeddings: 32_768,
    num_attention_heads: 12,
    num_hidden_layers: 32,
    position_embedding_type: "nope",
    residual_multiplier: 0.246,
    rope_theta: 10_000,
  },
  tensors: {
    "model.embed_tokens.weight": [100_352, 768],
    "model.norm.weight": [768],
    ...layers(32, (layer) =>
      named(`model.layers.${layer}.`, {
        ...normsBefore(768),
        ...graniteFeedForward(768, 2048),
        ...(graniteAttention.has(layer)
          ? attention(768, 768, 256)
          : {
              "mamba.in_proj.weight": [3376, 768],
              "mamba.conv1d.weight": [1792, 1, 4],
              "mamba.conv1d.bias": [1792],
              "mamba.dt_bias": [48],
              "mamba.A_log": [48],
              "mamba.D": [48],
              "mamba.norm.weight": [1536],
              "mamba.out_proj.weight": [768, 1536],
            }),
      }),
    ),
  },
  expected: /^granite4, 32 layers, 28 with Mamba 2 and 4 with attention;/,
};

const graniteDense: RealModel = {
  name: "ibm-granite/granite-4.0-350m",
  source:
    "sizes as a test of a public repository has them; context and rope_theta as a public GGUF file has them; not verified: " +
    "tied embeddings",
  config: {
    ...graniteCommon,
    hidden_size: 1024,
    num_hidden_layers: 28,
    num_attention_heads: 16,
    intermediate_size: 2048,
    shared_intermediate_size: 2048,
    layer_types: Array(28).fill("attention"),
    position_embedding_type: "rope",
    max_position_embeddings: 32_768,
    residual_multiplier: 0.263,
    logits_scaling: 4,
    rope_theta: 10_000_000,
  },
  tensors: {
    "model.embed_tokens.weight": [100_352, 1024],
    "model.norm.weight": [1024],
    ...layers(28, (layer) =>
      named(`model.layers.${layer}.`, {
        ...normsBefore(1024),
        ...graniteFeedForward(1024, 2048),
        ...attention(1024, 1024, 256),
      }),
    ),
  },
  expected: /^granite4, 28 layers;/,
};

const olmo: RealModel = {
  name: "allenai/Olmo-3-7B-Instruct",
  source:
    "defaults of Olmo3Config in transformers 5.18; not verified: vocabulary, context, rotation",
  config: {
    architectures: ["Olmo3ForCausalLM"],
    model_type: "olmo3",
    vocab_size: 100_278,
    hidden_size: 4096,
    intermediate_size: 11_008,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 32,
    hidden_act: "silu",
    max_position_embeddings: 65_536,
    rms_norm_eps: 1e-6,
    rope_theta: 500_000,
    rope_scaling: {
      rope_type: "yarn",
      factor: 8,
      original_max_position_embeddings: 8192,
      attention_factor: 1.2079441541679836,
      beta_fast: 32,
      beta_slow: 1,
    },
    sliding_window: 4096,
    tie_word_embeddings: false,
  },
  tensors: {
    "model.embed_tokens.weight": [100_278, 4096],
    "lm_head.weight": [100_278, 4096],
    "model.norm.weight": [4096],
    ...layers(32, (layer) =>
      named(`model.layers.${layer}.`, {
        ...attention(4096, 4096, 4096),
        ...swiGlu(4096, 11_008),
        "self_attn.q_norm.weight": [4096],
        "self_attn.k_norm.weight": [4096],
        "post_attention_layernorm.weight": [4096],
        "post_feedforward_layernorm.weight": [4096],
      }),
    ),
  },
  expected: /^olmo3, 32 layers;/,
};

const ministral: RealModel = {
  name: "mistralai/Ministral-3-3B-Instruct-2512-BF16",
  source:
    "config.json of the same text model in two public repositories, one of them inside a pipeline of images; not verified: " +
    "the names of its tensors, and that the whole model ties embeddings as its text does; vision sizes are made up",
  config: {
    architectures: ["Mistral3ForConditionalGeneration"],
    model_type: "mistral3",
    text_config: {
      model_type: "ministral3",
      vocab_size: 131_072,
      hidden_size: 3072,
      intermediate_size: 9216,
      num_hidden_layers: 26,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      head_dim: 128,
      hidden_act: "silu",
      max_position_embeddings: 262_144,
      rms_norm_eps: 1e-5,
      sliding_window: null,
      tie_word_embeddings: true,
      rope_parameters: {
        type: "yarn",
        rope_type: "yarn",
        rope_theta: 1_000_000,
        factor: 16,
        original_max_position_embeddings: 16_384,
        beta_fast: 32,
        beta_slow: 1,
        mscale: 1,
        mscale_all_dim: 1,
        llama_4_scaling_beta: 0.1,
      },
    },
    vision_config: { model_type: "pixtral" },
  },
  tensors: {
    "language_model.model.embed_tokens.weight": [131_072, 3072],
    "language_model.model.norm.weight": [3072],
    ...layers(26, (layer) =>
      named(`language_model.model.layers.${layer}.`, {
        ...normsBefore(3072),
        ...attention(3072, 4096, 1024),
        ...swiGlu(3072, 9216),
      }),
    ),
    "vision_tower.patch_conv.weight": [1024, 3, 14, 14],
    "multi_modal_projector.linear_1.weight": [3072, 1024],
  },
  expected: /^ministral3, 26 layers; .* 2 of other parts/,
};

const miniCpm: RealModel = {
  name: "openbmb/MiniCPM5-1B",
  source:
    "layers, heads and both parameter counts as public pages give them (1,080,632,832; 679,552,512 without embeddings), " +
    "which leave one width and one vocabulary; not verified: rotation",
  config: {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    vocab_size: 130_560,
    hidden_size: 1536,
    intermediate_size: 4608,
    num_hidden_layers: 24,
    num_attention_heads: 16,
    num_key_value_heads: 2,
    head_dim: 128,
    hidden_act: "silu",
    max_position_embeddings: 131_072,
    rms_norm_eps: 1e-6,
    rope_theta: 5_000_000,
    tie_word_embeddings: false,
  },
  tensors: {
    "model.embed_tokens.weight": [130_560, 1536],
    "lm_head.weight": [130_560, 1536],
    "model.norm.weight": [1536],
    ...layers(24, (layer) =>
      named(`model.layers.${layer}.`, {
        ...normsBefore(1536),
        ...attention(1536, 2048, 256),
        ...swiGlu(1536, 4608),
      }),
    ),
  },
  expected: /^llama, 24 layers;/,
};

/** One of each family. */
export const realModels: readonly RealModel[] = [
  qwen,
  lfm2,
  graniteHybrid,
  graniteDense,
  olmo,
  ministral,
  miniCpm,
];
