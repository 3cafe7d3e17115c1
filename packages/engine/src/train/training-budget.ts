import { allLayerKinds, mixerOf, type LayerKind } from "@tinker-ts/hub/weights";
import type { DeviceName } from "../execution/device.js";
import type { KeptKind } from "../graph/kept-values.js";
import type { ModelConfig } from "../model/model-config.js";
import { stateShapes } from "../model/mixers/recurrence.js";
import { groupsOf, sitesOf, siteWidths, type Site, type SiteWidths } from "../model/sites.js";
import { scanChunk } from "./graphs/training-recurrence.js";

/** Sizes of a training pass's parts. They depend on model and settings only, never on current load. */
export interface TrainingBudget {
  /** Tokens per micro-batch; a longer datum makes a micro-batch of its own. */
  readonly microBatchTokens: number;
  /** Longest sequence with attention computed at once. */
  readonly wholeTokens: number;
  /** Queries per block in the attention of longer ones. */
  readonly blockTokens: number;
  /** Whether some layer has a state. @default false */
  readonly hasStates?: boolean;
  /** Tokens of longer ones after which states are handed on; programs are made for as many chunks. */
  readonly stateBlockTokens: number;
  /** Tokens of longer ones that pass the linear layers at once. */
  readonly chunkTokens: number;
  /** Layers that run as one program. */
  readonly layersPerSegment: number;
  /** Values of a segment's layers to keep. */
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

const defaultStateBlockTokens = 8 * scanChunk;

/** A program of this many operations takes about 100 ms, for which other work can wait. */
const operationsPerProgram = 2e10;

/** Longest sequence with attention computed at once on a GPU: its arrays cannot be divided into views. */
const gpuWholeTokens = 2048;

/**
 * Plans passes of a model within `activationBytes` of activations. On a GPU one program serves all
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
  const keptBytesPerToken = 4 * keptFloatsPerToken(config, keptKind);
  const isHeavy = defaultMicroBatchTokens * keptBytesPerToken > mostKeptBytes;
  return {
    microBatchTokens: isHeavy ? smallMicroBatchTokens : defaultMicroBatchTokens,
    wholeTokens: defaultWholeTokens,
    blockTokens: defaultBlockTokens,
    chunkTokens: defaultChunkTokens,
    stateBlockTokens: defaultStateBlockTokens,
    hasStates: allLayerKinds(config).some((layer) => mixerOf(layer) !== "attention"),
    layersPerSegment: layersAtOnce,
    keptKind,
    mergeFromTokens: mergeFromTokens(config, activationBytes),
    activationBytes,
    keptBytesPerToken,
  };
}

/** Values that all layers keep per token, at most; the narrow products of adapters do not count. */
function keptFloatsPerToken(config: ModelConfig, kind: KeptKind): number {
  return allLayerKinds(config).reduce(
    (sum, layer) =>
      sum +
      (mixerOf(layer) === "attention"
        ? attentionFloats(config, kind)
        : recurrentFloats(config, layer, kind)),
    0,
  );
}

function attentionFloats(config: ModelConfig, kind: KeptKind): number {
  const { hiddenSize, intermediateSize, heads, kvHeads, headDim } = config;
  const queries = heads * headDim;
  const keys = kvHeads * headDim;
  const norms = config.norms === "around" ? 2 * hiddenSize : 0;
  const gates = config.gatedAttention === true ? 2 * queries : 0;
  const products = 2 * hiddenSize + 2 * intermediateSize + 2 * queries + 2 * keys + norms + gates;
  if (kind === "dear") return products;
  const raw = config.qkNorm ? 2 * (queries + keys) : 0;
  const scores = heads * defaultWholeTokens;
  return products + 2 * hiddenSize + 2 * intermediateSize + raw + scores;
}

/** Rows of the mixer's linear layers, and in the scan a few tables of chunks per head. */
function recurrentFloats(config: ModelConfig, layer: LayerKind, kind: KeptKind): number {
  const { hiddenSize, intermediateSize } = config;
  const sites = groupsOf(layer).flatMap((group) => sitesOf(config, group));
  const rows = sumOverSites(config, sites, ({ outputs }) => outputs);
  const { conv: [channels = 0] = [], scan: [heads = 0, keyDim = 0, valueDim = 0] = [] } =
    stateShapes(config, layer);
  const inverse = heads * scanChunk;
  if (kind === "dear") return 2 * hiddenSize + rows + 2 * channels + inverse;
  const scans = heads * (5 * scanChunk + 5 * keyDim + 5 * valueDim);
  return 4 * hiddenSize + 2 * intermediateSize + 2 * rows + 4 * channels + scans;
}

function layersPerSegment(config: ModelConfig): number {
  const area = totalOver(config, areaOf) / config.layers;
  const perLayer = 2 * area * defaultMicroBatchTokens;
  return Math.max(1, Math.min(config.layers, Math.floor(operationsPerProgram / perLayer)));
}

/** A measure summed up over the sites of all layers. */
function totalOver(config: ModelConfig, measure: (widths: SiteWidths) => number): number {
  return allLayerKinds(config).reduce((sum, layer) => {
    const sites = groupsOf(layer).flatMap((group) => sitesOf(config, group));
    return sum + sumOverSites(config, sites, measure);
  }, 0);
}

/**
 * Merging takes (inputs * outputs) products per rank, and spares (inputs + outputs) per rank and token;
 * the factor accounts for reading and writing the weights. Without memory for the copy it is never done, and
 * an adapter would be lost in the rounding of weights in 8 bits.
 */
function mergeFromTokens(config: ModelConfig, activationBytes: number): number {
  const total = (measure: (widths: SiteWidths) => number): number =>
    totalOver(config, measure) + sumOverSites(config, ["head"], measure);
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
