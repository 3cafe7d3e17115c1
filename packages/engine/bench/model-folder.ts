import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { writeSafetensors, type ModelConfig } from "@tinker-ts/engine";
import { expectedTensors } from "@tinker-ts/hub/weights";

/** Writes a model of random BF16 weights as users have them: a folder of the hub's form. */
export async function writeModelFolder(folder: string, config: ModelConfig): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "config.json"), JSON.stringify(hubConfig(config)));
  let state = 1;
  const draw = (length: number, scale: number, offset: number): Float32Array => {
    const data = new Float32Array(length);
    for (let i = 0; i < length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      data[i] = (state / 2 ** 31) * scale + offset;
    }
    return data;
  };
  const tensors = [...expectedTensors(config)].map(([name, shape]) => {
    const length = shape.reduce((product, dim) => product * dim, 1);
    const [scale, offset] = shape.length === 1 ? [0.1, 1] : [Math.sqrt(3 / (shape.at(-1) ?? 1)), 0];
    return { name, shape, dtype: "BF16" as const, data: () => draw(length, scale, offset) };
  });
  await writeSafetensors(path.join(folder, "model.safetensors"), tensors);
}

function hubConfig(config: ModelConfig) {
  return {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    rope_theta: config.rope.theta,
    ...hybridConfig(config),
    vocab_size: config.vocabSize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    rms_norm_eps: config.normEpsilon,
    max_position_embeddings: config.contextLength,
    tie_word_embeddings: config.tiedEmbeddings,
  };
}

/** What Qwen3.5 says besides. */
function hybridConfig({ deltaRule, layerKinds = [], rope, headDim }: ModelConfig) {
  if (deltaRule === undefined) return {};
  return {
    architectures: ["Qwen3_5ForCausalLM"],
    model_type: "qwen3_5_text",
    rope_theta: undefined,
    rope_parameters: {
      rope_type: "default",
      rope_theta: rope.theta,
      partial_rotary_factor: (rope.rotaryDim ?? headDim) / headDim,
    },
    layer_types: layerKinds.map(({ mixer }) =>
      mixer === "deltaRule" ? "linear_attention" : "full_attention",
    ),
    linear_num_key_heads: deltaRule.keyHeads,
    linear_num_value_heads: deltaRule.valueHeads,
    linear_key_head_dim: deltaRule.keyDim,
    linear_value_head_dim: deltaRule.valueDim,
    linear_conv_kernel_dim: deltaRule.kernel,
  };
}
