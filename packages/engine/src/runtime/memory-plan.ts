import { EngineError } from "../errors.js";
import type { ModelConfig } from "../model/model-config.js";
import { adapterLayout } from "../model/parameter-layout.js";
import type { Precision } from "../model/precision.js";
import { sitesOfFlags } from "../model/sites.js";
import {
  isHeldInInt8,
  layerWeightSpecs,
  outerWeightSpecs,
  type WeightSpec,
} from "../model/weights.js";
import { largestProgramBytes } from "../sample/decoder.js";
import { headChunkRows } from "../train/head-pass.js";
import { trainingBudget } from "../train/training-budget.js";
import os from "node:os";

/** The division of a model's share of memory. */
export interface MemoryPlan {
  /** Activations that wait for the backward pass. */
  readonly activationBytes: number;
  /** Keys and values of running sequences. */
  readonly kvBytes: number;
  /** Keys and values of remembered prompts. */
  readonly prefixBytes: number;
  /** Rows of the vocabulary's size: logits and probabilities of the requested tokens. */
  readonly tableBytes: number;
}

const smallestShareBytes = 256 << 20;

/**
 * Divides the memory beside the weights. Sampling holds a second copy of them, packed for its kernels.
 * The division depends on the model alone: neither what runs at the moment nor which other models are
 * loaded may change how training is split, or results would not repeat bit for bit. Others count only
 * when it is decided whether there is room at all. `smaller` is what the model would take with smaller weights.
 */
export function planMemory(
  memoryBytes: number,
  weightBytes: number,
  otherWeightBytes: number,
  smaller?: SmallerWeights,
): MemoryPlan {
  if (weightBytes + otherWeightBytes + smallestShareBytes > memoryBytes) {
    const [others, way] =
      otherWeightBytes === 0
        ? ["", smallerWeightsHint(memoryBytes, smaller) ?? "choose a smaller model"]
        : [` and those of other models ${megabytes(otherWeightBytes)} MB`, "unload another model"];
    throw new EngineError(
      "not_enough_memory",
      `the model's weights take ${megabytes(weightBytes)} MB${others}, but the engine may use ` +
        `${megabytes(memoryBytes)} MB; raise memoryBytes or ${way}.`,
    );
  }
  return divideMemory(memoryBytes, weightBytes);
}

/** Smaller weights of a model, and what they take. */
export interface SmallerWeights {
  readonly weights: string;
  readonly weightBytes: number;
}

/**
 * Throws when `what` needs more than the unused memory of the machine, which would begin to swap.
 */
export function refuseSwapping(
  what: string,
  neededBytes: number,
  freeBytes: number,
  smaller?: SmallerWeights,
): void {
  if (neededBytes <= freeBytes) return;
  const suggestion = smallerWeightsHint(freeBytes, smaller) ?? "choose a smaller model";
  throw new EngineError(
    "not_enough_memory",
    `${what} ${megabytes(neededBytes)} MB, but the machine has ${megabytes(freeBytes)} MB left; end ` +
      `other programs, or ${suggestion}.`,
  );
}

/** Divides the memory that an engine may use. */
export function divideMemory(memoryBytes: number, weightBytes: number): MemoryPlan {
  const rest = Math.max(smallestShareBytes, memoryBytes - 2 * weightBytes);
  return {
    activationBytes: rest * 0.5,
    kvBytes: rest * 0.25,
    prefixBytes: rest * 0.1,
    tableBytes: rest * 0.1,
  };
}

function megabytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}

/** Suggests smaller weights if they would fit. */
function smallerWeightsHint(
  memoryBytes: number,
  smaller: SmallerWeights | undefined,
): string | undefined {
  if (smaller === undefined || smaller.weightBytes + smallestShareBytes > memoryBytes)
    return undefined;
  return `load it with weights: "${smaller.weights}", which take ${megabytes(smaller.weightBytes)} MB`;
}

/** Memory that a model takes, as the process would show it. */
export interface MemoryEstimate {
  /** Weights, needed for training and for sampling. */
  readonly weightBytes: number;
  /** The whole process while an adapter is trained. */
  readonly trainingBytes: number;
  /** The whole process while it samples, without training. */
  readonly samplingBytes: number;
  /** The whole process at its peak, when it does both. */
  readonly bothBytes: number;
}

/** Options of an estimate. */
export interface EstimateOptions {
  /** @default "f32" */
  readonly weights?: Precision["weights"];
  /** Rank of the adapter. @default 32 */
  readonly rank?: number;
  /** Memory that the engine may use, as in its options. @default 60 % of the machine's */
  readonly memoryBytes?: number;
}

/** Node, the engine's code, and ONNX Runtime with its sessions. */
const processBytes = 180e6;

/** Values, gradient and two moments of a parameter. */
const bytesPerTrained = 16;

/** The values at the moment of a snapshot, from which the trained ones move on. */
const bytesPerSampled = 4;

/** Buffers are rounded up to a few sizes. */
const rounding = 1.1;

/** Tables of a chunk of logits that exist at once. */
const logitTables = { f32: 6, int8: 8 } as const;

/** Values of a layer that exist at once between its products; with digits there are more of them. */
const layerValues = { f32: 10, int8: 34 } as const;

/** Memory per byte of packed weights: the C library's heap keeps part of what packing frees. */
const packing = { f32: 1.2, int8: 1.1 } as const;

/**
 * Memory per byte of weights for compiling the sampler's last program: the weights as read, transposed
 * and packed. Passes hold buffers that are freed for it.
 */
const making = { f32: 0, int8: 2.3 } as const;

/** Bytes of the frozen weights in memory. */
export function weightBytesOf(config: ModelConfig): number {
  const { embedding, head, finalNorm } = outerWeightSpecs(config);
  const outer = sumOf([finalNorm, ...(head === undefined ? [] : [head])], bytesIn(config));
  // Rows of an embedding have a second digit.
  const second = isHeldInInt8(config, embedding) ? elementsOf(embedding) : 0;
  return layerBytesOf(config) + outer + bytesIn(config)(embedding) + second;
}

/** Bytes of the copy of the weights that sampling packs for its kernels. */
export function packedBytesOf(config: ModelConfig): number {
  return layerBytesOf(config) + bytesIn(config)(outerWeightSpecs(config).embedding);
}

function layerBytesOf(config: ModelConfig): number {
  const layers = Array.from({ length: config.layers }, (_, layer) =>
    sumOf(layerWeightSpecs(config, layer), bytesIn(config)),
  );
  return layers.reduce((sum, bytes) => sum + bytes, 0);
}

/** Estimates a model's memory in some precision before it is read. */
export function estimateMemory(
  plain: ModelConfig,
  { weights = "f32", rank = 32, memoryBytes = defaultMemoryBytes() }: EstimateOptions = {},
): MemoryEstimate {
  const config = withWeights(plain, weights);
  const weightBytes = weightBytesOf(config);
  const sites = sitesOfFlags(config, { trainAttn: true, trainMlp: true, trainUnembed: true });
  const parameters = adapterLayout(config, sites, rank).length;
  const base = processBytes + weightBytes + readingBytes(config);
  const training = trainingBytes(config, memoryBytes) + bytesPerTrained * parameters;
  const sampling = samplingBytes(config) + bytesPerSampled * parameters;
  return {
    weightBytes,
    trainingBytes: base + training,
    // Packed layers are released.
    samplingBytes: base - layerBytesOf(config) + sampling + makingBytes(config),
    bothBytes: base + training + sampling,
  };
}

/** Memory of passes besides weights and parameters. */
function trainingBytes(config: ModelConfig, memoryBytes: number): number {
  const { activationBytes } = divideMemory(memoryBytes, weightBytesOf(config));
  const budget = trainingBudget(config, activationBytes);
  const { microBatchTokens, keptBytesPerToken, mergeFromTokens } = budget;
  const kind = config.precision?.weights ?? "f32";
  const kept = Math.min(microBatchTokens * keptBytesPerToken, activationBytes);
  const merged = microBatchTokens >= mergeFromTokens ? packedBytesOf(config) : 0;
  const turned = kind === "f32" ? 0 : config.vocabSize * config.hiddenSize;
  const logits = headChunkRows(config.vocabSize) * config.vocabSize * 4;
  const widest = Math.max(config.intermediateSize, config.heads * config.headDim);
  const values = microBatchTokens * widest * 4;
  return (
    rounding * kept + merged + turned + logitTables[kind] * logits + layerValues[kind] * values
  );
}

/** Memory of sampling besides weights and adapters. */
function samplingBytes(config: ModelConfig): number {
  const packed = packedBytesOf(config);
  return packed * (config.precision === undefined ? packing.f32 : packing.int8);
}

function makingBytes(config: ModelConfig): number {
  const largest = largestProgramBytes(config, layerBytesOf(config) / config.layers);
  return largest * making[config.precision?.weights ?? "f32"];
}

/** While weights are quantized, one matrix is held in 32 bits; reading leaves some memory in use. */
function readingBytes(config: ModelConfig): number {
  return config.precision === undefined ? 0 : 0.15 * weightBytesOf(config);
}

/** A configuration with its weights in some precision. */
function withWeights(config: ModelConfig, weights: Precision["weights"]): ModelConfig {
  const { precision, ...plain } = config;
  if (weights === "f32") return plain;
  return { ...plain, precision: precision ?? { weights, activations: "int16" } };
}

function bytesIn(config: ModelConfig): (spec: WeightSpec) => number {
  return (spec) => {
    const [rows = 0] = spec.shape;
    return isHeldInInt8(config, spec) ? elementsOf(spec) + 4 * rows : 4 * elementsOf(spec);
  };
}

function elementsOf({ shape }: WeightSpec): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

function sumOf(specs: readonly WeightSpec[], measure: (spec: WeightSpec) => number): number {
  return specs.reduce((sum, spec) => sum + measure(spec), 0);
}

/** Part of the machine's memory that an engine may use by default. */
const defaultFraction = 0.6;

/** Memory that an engine may use by default. */
export function defaultMemoryBytes(): number {
  return Math.floor(machineBytes() * defaultFraction);
}

/** Memory that nothing uses at the moment, or `Infinity` where the system does not report memory that it could free. */
export function unusedBytes(): number {
  // Elsewhere the page cache counts as used, although it is freed on demand.
  return process.platform === "linux" ? process.availableMemory() : Infinity;
}

/** Memory of the machine, or of the container that the process runs in. */
export function machineBytes(): number {
  // A container's limit; 0 or absurdly large when there is none.
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, os.totalmem()) : os.totalmem();
}
