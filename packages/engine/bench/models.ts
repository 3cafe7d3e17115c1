import type { Engine, BaseModel, LayerKind, ModelConfig, NamedTensors } from "@tinker-ts/engine";
import { expectedTensors } from "@tinker-ts/hub/weights";

const common = {
  architecture: "qwen3",
  normEpsilon: 1e-6,
  rope: { theta: 1e6, scaling: null },
  contextLength: 8192,
  tiedEmbeddings: false,
  qkvBias: false,
  outputBias: false,
  mlpBias: false,
  qkNorm: true,
  bosTokenId: null,
  eosTokenIds: [],
} as const satisfies Partial<ModelConfig>;

/** What everything is measured on: a model that fits into caches, one that does not, and a real shape. */
export const benchModels = {
  S: {
    ...common,
    hiddenSize: 256,
    layers: 4,
    heads: 4,
    kvHeads: 2,
    headDim: 64,
    intermediateSize: 768,
    vocabSize: 512,
  },
  M: {
    ...common,
    hiddenSize: 1024,
    layers: 8,
    heads: 16,
    kvHeads: 8,
    headDim: 128,
    intermediateSize: 3072,
    vocabSize: 32_000,
  },
  "0.6B": {
    ...common,
    tiedEmbeddings: true,
    hiddenSize: 1024,
    layers: 28,
    heads: 16,
    kvHeads: 8,
    headDim: 128,
    intermediateSize: 3072,
    vocabSize: 151_936,
  },
  "Qwen3.5-0.8B": {
    ...common,
    architecture: "qwen3_5",
    rope: { theta: 1e7, scaling: null, rotaryDim: 64 },
    tiedEmbeddings: true,
    normsPlusOne: true,
    gatedAttention: true,
    hiddenSize: 1024,
    layers: 24,
    heads: 8,
    kvHeads: 2,
    headDim: 256,
    intermediateSize: 3584,
    vocabSize: 248_320,
    deltaRule: { keyHeads: 16, valueHeads: 16, keyDim: 128, valueDim: 128, kernel: 4 },
    layerKinds: Array.from({ length: 24 }, (_, layer): LayerKind =>
      layer % 4 === 3
        ? { window: null, rotation: "rope" }
        : { mixer: "deltaRule", window: null, rotation: null },
    ),
  },
} as const satisfies Record<string, ModelConfig>;

export type BenchModelName = keyof typeof benchModels;

/** Makes one of the models with random weights, with features of its own if wanted. */
export async function createBenchModel(
  engine: Engine,
  name: BenchModelName,
  features: Partial<ModelConfig> = {},
): Promise<BaseModel> {
  const config: ModelConfig = { ...benchModels[name], ...features };
  return engine.createModel(config, { tensors: randomTensors(config) });
}

/** Weights that keep activations at a natural size; drawn fast, because there are many. */
export function randomTensors(config: ModelConfig): NamedTensors {
  let state = 1;
  const draw = (length: number, scale: number, offset: number): Float32Array => {
    const data = new Float32Array(length);
    for (let i = 0; i < length; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      data[i] = (state / 2 ** 31) * scale + offset;
    }
    return data;
  };
  return new Map(
    [...expectedTensors(config)].map(([name, shape]) => {
      const length = shape.reduce((product, dim) => product * dim, 1);
      const isNorm = shape.length === 1;
      const scale = Math.sqrt(3 / (shape.at(-1) ?? 1));
      const data = isNorm ? draw(length, 0.1, 1) : draw(length, scale, 0);
      return [name, { data, shape }];
    }),
  );
}

/** Multiplications and additions of one token in all linear layers, forwards. */
export function linearOperations(config: ModelConfig): number {
  const { hiddenSize: hidden, intermediateSize, heads, kvHeads, headDim } = config;
  const attention = 2 * hidden * heads * headDim + 2 * hidden * kvHeads * headDim;
  const perLayer = attention + 3 * hidden * intermediateSize;
  return 2 * (config.layers * perLayer + hidden * config.vocabSize);
}

/**
 * Operations of a LoRA training step: linear layers forwards and their input gradients; causal attention
 * forwards (2 products) and backwards (5), half of each square; low-rank products forwards and backwards.
 */
export function trainingOperations(
  config: ModelConfig,
  lengths: readonly number[],
  rank: number,
): number {
  const { hiddenSize: hidden, intermediateSize, heads, kvHeads, headDim, layers } = config;
  const queries = heads * headDim;
  const keys = kvHeads * headDim;
  const widths = 2 * (hidden + queries) + 2 * (hidden + keys) + 3 * (hidden + intermediateSize);
  const lowRank = 3 * 2 * rank * (layers * widths + hidden + config.vocabSize);
  let operations = 0;
  for (const length of lengths) {
    const attention = 7 * 2 * layers * queries * (length / 2);
    operations += length * (2 * linearOperations(config) + attention + lowRank);
  }
  return operations;
}
