import {
  embeddingName,
  finalNormName,
  inLayer,
  layerKind,
  layerTensors,
  unembeddingName,
  type LayerKind,
  type LayerTensorKey,
} from "@tinker-ts/hub/weights";
import type { ModelConfig } from "./model-config.js";

/** Short name of a layer's weight: a stored tensor, or a part of one. */
export type WeightKey = LayerTensorKey | "mambaTime";

/** Values by weight of a layer. */
export type LayerWeights<T> = { readonly [K in WeightKey]?: T };

/** Values by weight outside the layers; `head` is absent when it is the embedding. */
export interface OuterWeights<T> {
  readonly embedding: T;
  readonly finalNorm: T;
  readonly head?: T;
}

/** A weight's name and shape in a Hugging Face model. */
export interface WeightSpec {
  readonly name: string;
  readonly shape: readonly number[];
  /** Its short name, where it belongs to a layer. */
  readonly key?: WeightKey;
  /** The first row, if it is a part of the rows of a stored tensor. */
  readonly firstRow?: number;
}

/** A weight of a layer. */
export type LayerWeightSpec = WeightSpec & { readonly key: WeightKey };

/** The weights of a layer, in order of use. */
export function layerWeightSpecs(config: ModelConfig, layer: number): readonly LayerWeightSpec[] {
  return heldWeights(config, layerKind(config, layer)).map((weight) => ({
    ...weight,
    name: inLayer(layer, weight.name),
  }));
}

/** The weights of a layer of some kind, under the names that they have within it. */
export function heldWeights(config: ModelConfig, kind: LayerKind): readonly LayerWeightSpec[] {
  return layerTensors(config, kind).flatMap<LayerWeightSpec>(({ key, name, shape, firstRow }) => {
    const [rows = 0, ...columns] = shape;
    const steps = key === "mambaIn" && config.precision !== undefined ? config.mamba?.heads : 0;
    if (steps === undefined || steps === 0) {
      return [{ key, name, shape, ...(firstRow === undefined ? {} : { firstRow }) }];
    }
    // The last rows are the time steps that the decay is computed from.
    const before = rows - steps;
    return [
      { key, name, shape: [before, ...columns], firstRow: 0 },
      { key: "mambaTime", name, shape: [steps, ...columns], firstRow: before },
    ];
  });
}

/** Names and shapes of the weights outside the layers. */
export function outerWeightSpecs(config: ModelConfig): OuterWeights<WeightSpec> {
  const table = [config.vocabSize, config.hiddenSize];
  return {
    embedding: { name: embeddingName, shape: table },
    finalNorm: { name: finalNormName(config), shape: [config.hiddenSize] },
    ...(config.tiedEmbeddings ? {} : { head: { name: unembeddingName, shape: table } }),
  };
}

/**
 * Narrower rows stay in 32 bits: products of them are about as fast there, and rounding errors average out
 * less over few terms.
 */
const shortestInt8Row = 128;

/** Gates and decays of states stay in 32 bits: their errors add up over a whole sequence. */
const exact: ReadonlySet<WeightKey> = new Set<WeightKey>(["deltaA", "deltaB", "mambaTime"]);

/** Whether a weight is held in 8 bits. */
export function isHeldInInt8(
  { precision }: ModelConfig,
  { shape, key }: Pick<WeightSpec, "shape" | "key">,
): boolean {
  if (precision === undefined || shape.length !== 2) return false;
  const [, columns = 0] = shape;
  return columns >= shortestInt8Row && (key === undefined || !exact.has(key));
}

/** Name of the feed with the scales of a weight in 8 bits. */
export function scaleName(weight: string): string {
  return `${weight}.scale`;
}

/** Name of the feed with a transposed weight in 8 bits, [inputs, outputs]. */
export function forwardName(weight: string): string {
  return `${weight}.forward`;
}
