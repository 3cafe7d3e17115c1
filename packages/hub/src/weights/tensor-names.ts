import { allLayerKinds } from "./layer-kinds.js";
import { finalNormModule, layerTensors } from "./layer-tensors.js";
import type { ModelConfig } from "./model-config.js";

/** Name of the embedding matrix, [vocabSize, hiddenSize]. */
export const embeddingName = "model.embed_tokens.weight";

/** Name of the unembedding matrix, [vocabSize, hiddenSize]; absent from models with tied embeddings. */
export const unembeddingName = "lm_head.weight";

/** Name of the scale of the last norm, [hiddenSize]. */
export function finalNormName(config: ModelConfig): string {
  return `model.${finalNormModule(config)}.weight`;
}

/** The full name of something that belongs to a layer; layers count from zero. */
export function inLayer(layer: number, name: string): string {
  return `model.layers.${layer}.${name}`;
}

/** Every tensor that the files of a model of this configuration hold, with its shape, in order of use. */
export function expectedTensors(config: ModelConfig): Map<string, readonly number[]> {
  const { vocabSize, hiddenSize } = config;
  const tensors = new Map<string, readonly number[]>([[embeddingName, [vocabSize, hiddenSize]]]);
  for (const [layer, kind] of allLayerKinds(config).entries()) {
    for (const { name, shape, firstRow } of layerTensors(config, kind)) {
      const [rows = 0, ...columns] = shape;
      tensors.set(inLayer(layer, name), firstRow ? [firstRow + rows, ...columns] : shape);
    }
  }
  tensors.set(finalNormName(config), [hiddenSize]);
  if (!config.tiedEmbeddings) tensors.set(unembeddingName, [vocabSize, hiddenSize]);
  return tensors;
}
