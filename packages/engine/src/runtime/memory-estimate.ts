import type { ModelConfig } from "../files/model-config.js";
import type { Precision } from "../files/precision.js";
import { adapterLayout } from "../model/parameter-layout.js";
import { sitesOfFlags } from "../model/sites.js";
import { layerWeightSpecs, outerWeightSpecs, type WeightSpec } from "../model/weights.js";
import { trainingBudget } from "../train/training-budget.js";

/** Memory that a model takes, as the process would show it. */
export interface MemoryEstimate {
  /** Weights as they are held for whatever is done. */
  readonly weightBytes: number;
  /** The whole process while an adapter is trained. */
  readonly trainingBytes: number;
  /** The whole process while it samples, without training. */
  readonly samplingBytes: number;
  /** The whole process at its peak, when it does both. */
  readonly bothBytes: number;
}

/** What an estimate is for. */
export interface EstimateOptions {
  /** @default "f32" */
  readonly weights?: Precision["weights"];
  /** Rank of the adapter. @default 32 */
  readonly rank?: number;
}

/** Node, the engine's code, and ONNX Runtime with its sessions. */
const processBytes = 180e6;

/** A chunk of logits with its gradient, and what products of a layer need between themselves. */
const passBytes = 420e6;

/** Values, gradient and two moments of a parameter. */
const bytesPerParameter = 16;

/** Buffers are rounded up to a few sizes. */
const rounding = 1.1;

/** Bytes of the frozen weights in memory. */
export function weightBytesOf(config: ModelConfig): number {
  const { embedding, head, finalNorm } = outerWeightSpecs(config);
  const layer = sumOf(Object.values(layerWeightSpecs(config, 0)), bytesIn(config));
  const outer = sumOf([finalNorm, ...(head === undefined ? [] : [head])], bytesIn(config));
  // Rows of an embedding have a second digit.
  const second = config.precision === undefined ? 0 : elementsOf(embedding);
  return config.layers * layer + outer + bytesIn(config)(embedding) + second;
}

/** Bytes of the copy of the weights that sampling packs for its kernels. */
export function packedBytesOf(config: ModelConfig): number {
  const layer = sumOf(Object.values(layerWeightSpecs(config, 0)), bytesIn(config));
  return config.layers * layer + bytesIn(config)(outerWeightSpecs(config).embedding);
}

/** What a model takes in memory for some precision, before any of it is read. */
export function estimateMemory(
  plain: ModelConfig,
  { weights = "f32", rank = 32 }: EstimateOptions = {},
): MemoryEstimate {
  const config = withWeights(plain, weights);
  const weightBytes = weightBytesOf(config);
  const { microBatchTokens, keptBytesPerToken } = trainingBudget(config, Infinity);
  const sites = sitesOfFlags(config, { trainAttn: true, trainMlp: true, trainUnembed: true });
  const adapterBytes = adapterLayout(config, sites, rank).length;
  const turnedHead = config.precision === undefined ? 0 : config.vocabSize * config.hiddenSize;
  const training =
    rounding * microBatchTokens * keptBytesPerToken +
    passBytes +
    bytesPerParameter * adapterBytes +
    turnedHead;
  // While the largest program is made, its weights exist as a message, as what was read of it and, in 8 bits,
  // turned; the packed ones come on top.
  const copies = config.precision === undefined ? 2 : 3;
  const making = copies * bytesIn(config)(outerWeightSpecs(config).embedding);
  const sampling = packedBytesOf(config) + 2 * 4 * adapterBytes + making;
  const base = processBytes + weightBytes;
  return {
    weightBytes,
    trainingBytes: base + training,
    samplingBytes: base + sampling,
    bothBytes: base + training + sampling,
  };
}

/** A configuration with its weights in some precision. */
function withWeights(config: ModelConfig, weights: Precision["weights"]): ModelConfig {
  const { precision, ...plain } = config;
  if (weights === "f32") return plain;
  return { ...plain, precision: precision ?? { weights, activations: "int16" } };
}

function bytesIn({ precision }: ModelConfig): (spec: WeightSpec) => number {
  return (spec) => {
    const [rows = 0, columns] = spec.shape;
    if (precision === undefined || columns === undefined) return 4 * elementsOf(spec);
    return elementsOf(spec) + 4 * rows;
  };
}

function elementsOf({ shape }: WeightSpec): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

function sumOf(specs: readonly WeightSpec[], measure: (spec: WeightSpec) => number): number {
  return specs.reduce((sum, spec) => sum + measure(spec), 0);
}
