import type { ModelConfig } from "../files/model-config.js";
import type { PortValues } from "../execution/program.js";
import type { WeightSource } from "../files/weight-source.js";
import { toInt8, type Int8Matrix } from "./int8-matrix.js";
import {
  isHeldInInt8,
  layerWeightKeys,
  layerWeightSpecs,
  outerWeightSpecs,
  scaleName,
} from "./weights.js";
import type { WeightSpec } from "./weights.js";

/** Weights by the names under which graphs are fed; one in 8 bits has its scales beside it. */
export type WeightFeeds = Readonly<Record<string, Float32Array | Int8Array>>;

/** A model's weights in memory. */
export interface ModelWeights {
  readonly layers: readonly WeightFeeds[];
  /** Rows by token; in 8 bits they have a second digit, because their error would go through all layers. */
  readonly embedding: Float32Array | Int8Matrix;
  /** The final norm and the unembedding, which is the embedding itself when they are tied. */
  readonly outer: WeightFeeds;
}

/** A model's weights where programs read them: in the processor's memory or in a device's. */
export interface FedWeights {
  readonly layers: readonly PortValues[];
  readonly outer: PortValues;
}

/** How far loading has come. */
export interface LoadProgress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
}

/** Reads all weights, as the model's precision wants them; matrices become int8 one by one. */
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
  // Matrices of layers that become int8 are read into one array: what each would leave waits for the collector.
  const ofLayers = layerSpecs.flatMap((specs) => Object.values(specs));
  const passing = ofLayers.filter(({ shape }) => isHeldInInt8(config, shape)).map(elementsOf);
  const spare = new Float32Array(passing.reduce((most, length) => Math.max(most, length), 0));
  const read = async (spec: WeightSpec): Promise<Float32Array | Int8Matrix> => {
    options.signal?.throwIfAborted();
    const isInt8 = isHeldInInt8(config, spec.shape);
    const length = elementsOf(spec);
    const target = isInt8 && length <= spare.length ? spare.subarray(0, length) : undefined;
    const data = await source.read(spec.name, target, options.signal);
    const [rows = 0] = spec.shape;
    const held = isInt8 ? toInt8(spec.name, data, rows, spec === outer.embedding) : data;
    loadedBytes += sizeBytes(spec);
    options.onProgress?.({ loadedBytes, totalBytes });
    return held;
  };

  const embedding = await read(outer.embedding);
  const layers: WeightFeeds[] = [];
  for (const specs of layerSpecs) {
    const weights: Record<string, Float32Array | Int8Array> = {};
    for (const key of layerWeightKeys) {
      const spec = specs[key];
      if (spec !== undefined) Object.assign(weights, feedsOf(key, await read(spec)));
    }
    layers.push(weights);
  }
  const finalNorm = feedsOf("finalNorm", await read(outer.finalNorm));
  const head = outer.head === undefined ? embedding : await read(outer.head);
  return { layers, embedding, outer: { ...finalNorm, ...feedsOf("head", head) } };
}

/** Weights in 32 bits, which what changes weights works with. */
export function floatWeights(feeds: WeightFeeds): Readonly<Record<string, Float32Array>> {
  const floats: Record<string, Float32Array> = {};
  for (const [name, data] of Object.entries(feeds)) {
    if (!(data instanceof Float32Array)) throw new TypeError(`${name} is not held in 32 bits`);
    floats[name] = data;
  }
  return floats;
}

function feedsOf(name: string, weight: Float32Array | Int8Matrix): WeightFeeds {
  if (weight instanceof Float32Array) return { [name]: weight };
  return { [name]: weight.values, [scaleName(name)]: weight.scale };
}

function sizeBytes(spec: WeightSpec): number {
  return 4 * elementsOf(spec);
}

function elementsOf({ shape }: WeightSpec): number {
  return shape.reduce((product, dim) => product * dim, 1);
}
