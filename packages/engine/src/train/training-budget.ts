import type { DeviceName } from "../execution/device.js";
import type { ModelConfig } from "../files/model-config.js";
import type { KeptKind } from "../graph/kept-values.js";
import { layerSitesOf, siteWidths, type Site, type SiteWidths } from "../model/sites.js";

/** How much a training pass does at once. Depends on model and settings only, never on the moment. */
export interface TrainingBudget {
  /** Tokens per micro-batch; a longer datum makes a micro-batch of its own. */
  readonly microBatchTokens: number;
  /** Longest sequence whose attention is computed at once. */
  readonly wholeTokens: number;
  /** Queries per block in the attention of longer ones. */
  readonly blockTokens: number;
  /** Tokens of longer ones that pass the linear layers at once. */
  readonly chunkTokens: number;
  /** Layers that run as one program. */
  readonly layersPerSegment: number;
  /** What is kept of the layers of a segment. */
  readonly keptKind: KeptKind;
  /** Calls of at least this many tokens merge the adapter into the weights first. */
  readonly mergeFromTokens: number;
  /** Memory for activations that wait for the backward pass. */
  readonly activationBytes: number;
  /** Activations of all layers per token when everything is kept. */
  readonly keptBytesPerToken: number;
}

const defaultMicroBatchTokens = 1024;

/** Activations that a micro-batch may keep before it is made smaller: from here on they cost more than they save. */
const mostKeptBytes = 1e9;

/** Products of fewer rows would be noticeably slower. */
const smallMicroBatchTokens = 256;
const defaultWholeTokens = 512;
/** Scores of larger blocks leave the caches: with 512 a step on 4,096 tokens takes a quarter longer. */
const defaultBlockTokens = 128;

/** Values between the layers' operators leave the caches too. */
const defaultChunkTokens = 512;

/** A program of this many operations takes about 100 ms, for which other work can wait. */
const operationsPerProgram = 2e10;

/** Longest sequence whose attention a GPU computes at once: its values cannot be divided into views. */
const gpuWholeTokens = 2048;

/**
 * Plans passes of a model whose activations may take `activationBytes`. On a GPU one program serves all
 * layers, each of which is computed again on the way back: memory is scarcer there than time.
 */
export function trainingBudget(
  config: ModelConfig,
  activationBytes: number,
  device: DeviceName = "cpu",
): TrainingBudget {
  const budget = processorBudget(config, activationBytes);
  if (device === "cpu") return budget;
  return {
    ...budget,
    wholeTokens: gpuWholeTokens,
    layersPerSegment: 1,
    keptKind: "dear",
    mergeFromTokens: Infinity,
    keptBytesPerToken: Infinity,
  };
}

function processorBudget(config: ModelConfig, activationBytes: number): TrainingBudget {
  const layersAtOnce = layersPerSegment(config);
  // The values of a model that is too large for segments leave the caches: computing them again is as fast.
  const keptKind = layersAtOnce > 1 ? "all" : "dear";
  const keptBytesPerToken = 4 * config.layers * keptFloatsPerToken(config, keptKind);
  const isHeavy = defaultMicroBatchTokens * keptBytesPerToken > mostKeptBytes;
  return {
    microBatchTokens: isHeavy ? smallMicroBatchTokens : defaultMicroBatchTokens,
    wholeTokens: defaultWholeTokens,
    blockTokens: defaultBlockTokens,
    chunkTokens: defaultChunkTokens,
    layersPerSegment: layersAtOnce,
    keptKind,
    mergeFromTokens: mergeFromTokens(config, activationBytes),
    activationBytes,
    keptBytesPerToken,
  };
}

/** Values that one layer keeps per token, at most; the narrow products of adapters do not count. */
function keptFloatsPerToken(config: ModelConfig, kind: KeptKind): number {
  const { hiddenSize, intermediateSize, heads, kvHeads, headDim } = config;
  const queries = heads * headDim;
  const keys = kvHeads * headDim;
  const norms = config.norms === "around" ? 2 * hiddenSize : 0;
  const products = 2 * hiddenSize + 2 * intermediateSize + 2 * queries + 2 * keys + norms;
  if (kind === "dear") return products;
  const raw = config.qkNorm ? 2 * (queries + keys) : 0;
  const scores = heads * defaultWholeTokens;
  return products + 2 * hiddenSize + 2 * intermediateSize + raw + scores;
}

function layersPerSegment(config: ModelConfig): number {
  const perLayer = 2 * sumOverSites(config, layerSitesOf(config), areaOf) * defaultMicroBatchTokens;
  return Math.max(1, Math.min(config.layers, Math.floor(operationsPerProgram / perLayer)));
}

/**
 * Merging takes (inputs * outputs) products per rank, and spares (inputs + outputs) per rank and token;
 * the factor stands for reading and writing the weights. Without memory for the copy it is never done, and
 * an adapter would be lost in the rounding of weights in 8 bits.
 */
function mergeFromTokens(config: ModelConfig, activationBytes: number): number {
  const total = (measure: (widths: SiteWidths) => number): number =>
    config.layers * sumOverSites(config, layerSitesOf(config), measure) +
    sumOverSites(config, ["head"], measure);
  const area = total(areaOf);
  if (config.precision !== undefined) return Infinity;
  if (4 * area > activationBytes / 4) return Infinity;
  return Math.ceil((1.5 * area) / total(({ inputs, outputs }) => inputs + outputs));
}

function areaOf({ inputs, outputs }: SiteWidths): number {
  return inputs * outputs;
}

function sumOverSites(
  config: ModelConfig,
  sites: readonly Site[],
  measure: (widths: SiteWidths) => number,
): number {
  return sites.reduce((sum, site) => sum + measure(siteWidths(config, site)), 0);
}
