import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseModelConfig, writeSafetensors, type TensorToWrite } from "@tinker-ts/engine";
import { readModelConfig } from "@tinker-ts/engine";

/** The model that everything is measured on. */
export interface BenchModel {
  readonly name: string;
  readonly folder: string;
  readonly vocabSize: number;
}

const embedded = path.resolve(import.meta.dirname, "../../engine/sprout");

const standIn = {
  architectures: ["Qwen3ForCausalLM"],
  model_type: "qwen3",
  vocab_size: 2048,
  hidden_size: 256,
  intermediate_size: 768,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 64,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 1024,
  tie_word_embeddings: true,
};

/** The embedded model; where it has not been made yet, a random one of its size. */
export async function openBenchModel(folder: string): Promise<BenchModel> {
  if (existsSync(path.join(embedded, "model.safetensors"))) {
    const { vocabSize } = await readModelConfig(embedded);
    return { name: "tinker-ts/sprout", folder: embedded, vocabSize };
  }
  const made = path.join(folder, "stand-in");
  await writeStandIn(made);
  return { name: "a random model of sprout's size", folder: made, vocabSize: standIn.vocab_size };
}

async function writeStandIn(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "config.json"), JSON.stringify(standIn));
  const random = makeRandom();
  const tensors = [...shapesOf()].map(([name, shape]): TensorToWrite => {
    const length = shape.reduce((product, dim) => product * dim, 1);
    // Norms around 1, products of a size that keeps activations where they are.
    const [scale, offset] = shape.length === 1 ? [0.1, 1] : [Math.sqrt(3 / (shape[1] ?? 1)), 0];
    const data = Float32Array.from({ length }, () => random() * scale + offset);
    return { name, shape, data, dtype: "F32" };
  });
  await writeSafetensors(path.join(folder, "model.safetensors"), tensors, {});
}

function shapesOf(): Map<string, readonly number[]> {
  const { hiddenSize, intermediateSize, heads, kvHeads, headDim, layers, vocabSize } =
    parseModelConfig(standIn);
  const shapes = new Map<string, readonly number[]>([
    ["model.embed_tokens.weight", [vocabSize, hiddenSize]],
    ["model.norm.weight", [hiddenSize]],
  ]);
  for (let layer = 0; layer < layers; layer++) {
    const add = (name: string, ...shape: number[]) =>
      shapes.set(`model.layers.${layer}.${name}.weight`, shape);
    add("input_layernorm", hiddenSize);
    add("post_attention_layernorm", hiddenSize);
    add("self_attn.q_norm", headDim);
    add("self_attn.k_norm", headDim);
    add("self_attn.q_proj", heads * headDim, hiddenSize);
    add("self_attn.k_proj", kvHeads * headDim, hiddenSize);
    add("self_attn.v_proj", kvHeads * headDim, hiddenSize);
    add("self_attn.o_proj", hiddenSize, heads * headDim);
    add("mlp.gate_proj", intermediateSize, hiddenSize);
    add("mlp.up_proj", intermediateSize, hiddenSize);
    add("mlp.down_proj", hiddenSize, intermediateSize);
  }
  return shapes;
}

/** Numbers from -1 to 1, the same in every run. */
function makeRandom(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return state / 2 ** 31;
  };
}
