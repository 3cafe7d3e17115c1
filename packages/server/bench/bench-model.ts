import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { readModelConfig, writeSafetensors, type ModelConfig } from "@tinker-ts/engine";
import { benchModels, randomTensors, type BenchModelName } from "../../engine/bench/models.js";

/** A model that something is measured on. */
export interface BenchModel {
  readonly name: string;
  readonly folder: string;
  readonly vocabSize: number;
}

const embedded = path.resolve(import.meta.dirname, "../../engine/sprout");

/** The embedded model. */
export async function openBenchModel(): Promise<BenchModel> {
  const { vocabSize } = await readModelConfig(embedded);
  return { name: "tinker-ts/sprout", folder: embedded, vocabSize };
}

/**
 * Writes one of the engine's bench models as a folder that can be served. It speaks with sprout's tokenizer,
 * grown by words up to the model's vocabulary, so that every token has a text that must be sent.
 */
export async function writeBenchModel(name: BenchModelName, parent: string): Promise<BenchModel> {
  const folder = path.join(parent, name);
  await mkdir(folder, { recursive: true });
  const tokenizer = JSON.parse(await readFile(path.join(embedded, "tokenizer.json"), "utf8"));
  const known = Object.keys(tokenizer.model.vocab).length + tokenizer.added_tokens.length;
  const vocabSize = Math.max(benchModels[name].vocabSize, known);
  for (let id = known; id < vocabSize; id++) tokenizer.model.vocab[`Ġw${id.toString(36)}`] = id;
  await writeFile(path.join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  const settings = await readFile(path.join(embedded, "tokenizer_config.json"));
  await writeFile(path.join(folder, "tokenizer_config.json"), settings);

  const config: ModelConfig = { ...benchModels[name], vocabSize };
  await writeFile(path.join(folder, "config.json"), JSON.stringify(toQwen3Config(config)));
  const tensors = [...randomTensors(config)].map(([tensor, { data, shape }]) => {
    return { name: tensor, data, shape, dtype: "F32" as const };
  });
  await writeSafetensors(path.join(folder, "model.safetensors"), tensors, {});
  return { name, folder, vocabSize };
}

function toQwen3Config(config: ModelConfig): object {
  return {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    vocab_size: config.vocabSize,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    rms_norm_eps: config.normEpsilon,
    rope_theta: config.rope.theta,
    max_position_embeddings: config.contextLength,
    tie_word_embeddings: config.tiedEmbeddings,
  };
}
