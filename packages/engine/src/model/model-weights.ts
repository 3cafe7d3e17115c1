import type { ModelConfig } from "../files/model-config.js";
import type { WeightSource } from "../files/weight-source.js";
import { layerWeightKeys, layerWeightSpecs, outerWeightSpecs } from "./weights.js";
import type { WeightSpec } from "./weights.js";

/** A model's weights in memory, by the names under which graphs are fed. */
export interface ModelWeights {
  readonly layers: readonly Readonly<Record<string, Float32Array>>[];
  readonly embedding: Float32Array;
  readonly finalNorm: Float32Array;
  /** The unembedding; the embedding itself when they are tied. */
  readonly head: Float32Array;
}

/** How far loading has come. */
export interface LoadProgress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
}

/** Reads all weights as 32-bit floats. */
export async function loadModelWeights(
  config: ModelConfig,
  source: WeightSource,
  options: { signal?: AbortSignal; onProgress?: (progress: LoadProgress) => void } = {},
): Promise<ModelWeights> {
  const outer = outerWeightSpecs(config);
  const layerSpecs = Array.from({ length: config.layers }, (_, layer) =>
    layerWeightSpecs(config, layer),
  );
  const all = [...Object.values(outer), ...layerSpecs.flatMap((specs) => Object.values(specs))];
  const totalBytes = all.reduce((sum, spec) => sum + sizeBytes(spec), 0);
  let loadedBytes = 0;
  const read = async (spec: WeightSpec): Promise<Float32Array> => {
    options.signal?.throwIfAborted();
    const data = await source.read(spec.name, undefined, options.signal);
    loadedBytes += sizeBytes(spec);
    options.onProgress?.({ loadedBytes, totalBytes });
    return data;
  };

  const embedding = await read(outer.embedding);
  const layers: Record<string, Float32Array>[] = [];
  for (const specs of layerSpecs) {
    const weights: Record<string, Float32Array> = {};
    for (const key of layerWeightKeys) {
      const spec = specs[key];
      if (spec !== undefined) weights[key] = await read(spec);
    }
    layers.push(weights);
  }
  const finalNorm = await read(outer.finalNorm);
  const head = outer.head === undefined ? embedding : await read(outer.head);
  return { layers, embedding, finalNorm, head };
}

function sizeBytes(spec: WeightSpec): number {
  return 4 * spec.shape.reduce((product, dim) => product * dim, 1);
}
