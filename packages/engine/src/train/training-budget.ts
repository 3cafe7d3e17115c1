import type { ModelConfig } from "../files/model-config.js";

/** How much a training pass does at once. Depends on model and settings only, never on the moment. */
export interface TrainingBudget {
  /** Tokens per micro-batch; a longer datum makes a micro-batch of its own. */
  readonly microBatchTokens: number;
  /** Memory for activations that wait for the backward pass. */
  readonly activationBytes: number;
  /** Activations of all layers per token when everything is kept. */
  readonly keptBytesPerToken: number;
}

const defaultMicroBatchTokens = 1024;

/** Plans passes of a model whose activations may take `activationBytes`. */
export function trainingBudget(config: ModelConfig, activationBytes: number): TrainingBudget {
  return {
    microBatchTokens: defaultMicroBatchTokens,
    activationBytes,
    keptBytesPerToken: 4 * config.layers * keptFloatsPerToken(config),
  };
}

/** Values that one layer keeps per token; the narrow products of adapters do not count. */
function keptFloatsPerToken(config: ModelConfig): number {
  const { hiddenSize, intermediateSize, heads, kvHeads, headDim } = config;
  const queries = heads * headDim;
  const keys = kvHeads * headDim;
  const raw = config.qkNorm ? queries + keys : 0;
  return 2 * hiddenSize + 2 * intermediateSize + 2 * queries + 2 * keys + raw;
}
