import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseModelConfig, type ModelConfig } from "../../src/weights/model-config.js";
import { writeSafetensors, type TensorToWrite } from "../../src/weights/safetensors-writer.js";
import { expectedTensors } from "../../src/weights/tensor-names.js";
import type { StoredDtype } from "../../src/weights/weight-source.js";

/** A Llama configuration of two small layers, to be varied by tests. */
export const tinyLlama = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  vocab_size: 20,
  hidden_size: 8,
  intermediate_size: 12,
  num_hidden_layers: 2,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  head_dim: 4,
  rms_norm_eps: 1e-5,
  max_position_embeddings: 64,
  tie_word_embeddings: false,
};

/** How a tiny model's folder is laid out. */
export interface TinyModelOptions {
  readonly config?: object;
  readonly dtype?: StoredDtype;
  /** Names of the weight files; several make an index. */
  readonly files?: readonly string[];
  /** Changes the list of tensors before it is written. */
  readonly edit?: (tensors: Map<string, TensorToWrite>) => void;
}

/** Writes a model folder with repeatable weights. */
export async function writeTinyModel(
  folder: string,
  options: TinyModelOptions = {},
): Promise<ModelConfig> {
  const configJson = { ...tinyLlama, ...options.config };
  const config = parseModelConfig(configJson);
  const tensors = new Map<string, TensorToWrite>();
  for (const [name, shape] of expectedTensors(config)) {
    const data = repeatableValues(
      name,
      shape.reduce((a, b) => a * b, 1),
    );
    tensors.set(name, { name, shape, data, dtype: options.dtype ?? "F32" });
  }
  options.edit?.(tensors);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "config.json"), JSON.stringify(configJson));
  await writeWeights(folder, [...tensors.values()], options.files ?? ["model.safetensors"]);
  return config;
}

/** Values between -1 and 1 that depend on the name alone. */
export function repeatableValues(name: string, elements: number): Float32Array {
  let state = Buffer.from(name).reduce((hash, byte) => Math.imul(hash ^ byte, 16777619), 1);
  return Float32Array.from({ length: elements }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}

async function writeWeights(
  folder: string,
  tensors: readonly TensorToWrite[],
  files: readonly string[],
): Promise<void> {
  const weightMap: Record<string, string> = {};
  for (const [index, file] of files.entries()) {
    const part = tensors.filter((_, i) => i % files.length === index);
    for (const { name } of part) weightMap[name] = file;
    await writeSafetensors(path.join(folder, file), part, { metadata: { format: "pt" } });
  }
  if (files.length === 1) return;
  const index = JSON.stringify({ metadata: {}, weight_map: weightMap });
  await writeFile(path.join(folder, "model.safetensors.index.json"), index);
}
