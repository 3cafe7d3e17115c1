import type { WeightSource } from "@tinker-ts/hub/weights";
import type { PortValues } from "../execution/program.js";
import type { ModelConfig } from "./model-config.js";
import { freeMemory } from "../util/free-memory.js";
import { toInt8, type Int8Matrix } from "./int8-matrix.js";
import { isHeldInInt8, layerWeightSpecs, outerWeightSpecs, scaleName } from "./weights.js";
import type { LayerWeightSpec, WeightSpec } from "./weights.js";

/** Weights by the names of graph feeds; one in 8 bits has its scales beside it. */
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

/** Progress of loading. */
export interface LoadProgress {
  readonly loadedBytes: number;
  readonly totalBytes: number;
}

/** Options of reading weights. */
export interface LoadOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
}

/** Reads all weights, in the model's precision; matrices become int8 one by one. */
export async function loadModelWeights(
  config: ModelConfig,
  source: WeightSource,
  options: LoadOptions = {},
): Promise<ModelWeights> {
  const outer = outerWeightSpecs(config);
  const layerSpecs = Array.from({ length: config.layers }, (_, layer) =>
    layerWeightSpecs(config, layer),
  );
  const all = [...Object.values(outer), ...layerSpecs.flat()];
  const totalBytes = all.reduce((sum, spec) => sum + sizeBytes(spec), 0);
  let loadedBytes = 0;
  const reader = new WeightReader(config, source, options.signal, (bytes) => {
    loadedBytes += bytes;
    options.onProgress?.({ loadedBytes, totalBytes });
  });
  const read = (spec: WeightSpec) => reader.read(spec, spec === outer.embedding);
  const embedding = await read(outer.embedding);
  const layers: WeightFeeds[] = [];
  for (const specs of layerSpecs) layers.push(await reader.readLayer(specs));
  const finalNorm = feedsOf("finalNorm", await read(outer.finalNorm));
  const head = outer.head === undefined ? embedding : await read(outer.head);
  return { layers, embedding, outer: { ...finalNorm, ...feedsOf("head", head) } };
}

/** Reads the weights of one layer once more. */
export async function readLayerAgain(
  config: ModelConfig,
  source: WeightSource,
  layer: number,
): Promise<WeightFeeds> {
  return new WeightReader(config, source).readLayer(layerWeightSpecs(config, layer));
}

/**
 * Reads weights in the model's precision. Matrices that become int8 pass through an array in 32 bits, those
 * of a layer through the same one.
 */
class WeightReader {
  readonly #config: ModelConfig;
  readonly #source: WeightSource;
  readonly #signal: AbortSignal | undefined;
  readonly #onRead: (bytes: number) => void;
  readonly #spare: Float32Array;

  constructor(
    config: ModelConfig,
    source: WeightSource,
    signal?: AbortSignal,
    onRead: (bytes: number) => void = () => {},
  ) {
    this.#config = config;
    this.#source = source;
    this.#signal = signal;
    this.#onRead = onRead;
    const passing = layerWeightSpecs(config, 0)
      .filter((spec) => isHeldInInt8(config, spec) && spec.firstRow === undefined)
      .map(elementsOf);
    this.#spare = new Float32Array(Math.max(0, ...passing));
  }

  async readLayer(specs: readonly LayerWeightSpec[]): Promise<WeightFeeds> {
    const weights: Record<string, Float32Array | Int8Array> = {};
    let stored: { readonly name: string; readonly data: Float32Array } | undefined;
    for (const spec of specs) {
      const { key, name, shape, firstRow } = spec;
      if (firstRow === undefined) {
        Object.assign(weights, feedsOf(key, await this.read(spec)));
        continue;
      }
      // Parts of one tensor follow each other.
      if (stored?.name !== name) {
        stored = { name, data: await this.#source.read(name, undefined, this.#signal) };
      }
      const [rows = 0, columns = 0] = shape;
      const part = stored.data.slice(firstRow * columns, (firstRow + rows) * columns);
      Object.assign(weights, feedsOf(key, this.#hold(spec, part)));
      this.#onRead(sizeBytes(spec));
    }
    return weights;
  }

  #hold(spec: WeightSpec, data: Float32Array, withRest = false): Float32Array | Int8Matrix {
    const [rows = 0] = spec.shape;
    return isHeldInInt8(this.#config, spec) ? toInt8(spec.name, data, rows, withRest) : data;
  }

  async read(spec: WeightSpec, withRest = false): Promise<Float32Array | Int8Matrix> {
    this.#signal?.throwIfAborted();
    const isInt8 = isHeldInInt8(this.#config, spec);
    const length = elementsOf(spec);
    const passing = isInt8 ? this.#passing(length) : undefined;
    const data = await this.#source.read(spec.name, passing, this.#signal);
    const held = this.#hold(spec, data, withRest);
    if (data === passing && data.buffer !== this.#spare.buffer) freeMemory([data.buffer]);
    this.#onRead(sizeBytes(spec));
    return held;
  }

  /** Where a matrix is read on its way to int8. */
  #passing(length: number): Float32Array {
    const { length: room } = this.#spare;
    return length <= room ? this.#spare.subarray(0, length) : new Float32Array(length);
  }
}

/** Weights in 32 bits, as needed for changing them. */
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
