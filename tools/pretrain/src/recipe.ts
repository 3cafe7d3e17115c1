import { createHash } from "node:crypto";
import { markIds } from "./tokenizer/tokenizer-files.js";

/** Everything that decides what a pre-training run makes. */
export interface Recipe {
  readonly hiddenSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly intermediateSize: number;
  readonly contextLength: number;
  /** Pairs that the tokenizer merges; the vocabulary has 256 bytes and three marks besides. */
  readonly mergeCount: number;
  /** Documents from which the tokenizer is made. */
  readonly tokenizerDocuments: number;
  readonly steps: number;
  /** Steps at the end over which the learning rate falls. */
  readonly decaySteps: number;
  /** Tokens per step, at least. */
  readonly batchTokens: number;
  readonly peakLearningRate: number;
  readonly warmupSteps: number;
  /** How long the optimizer remembers the sizes of gradients; small batches need more than the default. */
  readonly beta2: number;
  readonly weightDecay: number;
  readonly gradClipNorm: number;
  readonly seed: number;
}

/** How tinker-ts/sprout was made. */
export const sproutRecipe: Recipe = {
  hiddenSize: 160,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  headDim: 48,
  intermediateSize: 448,
  contextLength: 1024,
  mergeCount: 1789,
  tokenizerDocuments: 10_000,
  steps: 10_500,
  decaySteps: 2500,
  batchTokens: 2048,
  peakLearningRate: 4e-3,
  warmupSteps: 100,
  beta2: 0.98,
  weightDecay: 0.1,
  gradClipNorm: 1,
  seed: 1,
};

/** The model's `config.json`. */
export function modelConfigJson(recipe: Recipe): object {
  const ids = markIds(recipe.mergeCount);
  return {
    architectures: ["Qwen3ForCausalLM"],
    model_type: "qwen3",
    vocab_size: ids.turnEnd + 1,
    hidden_size: recipe.hiddenSize,
    intermediate_size: recipe.intermediateSize,
    num_hidden_layers: recipe.layers,
    num_attention_heads: recipe.heads,
    num_key_value_heads: recipe.kvHeads,
    head_dim: recipe.headDim,
    hidden_act: "silu",
    max_position_embeddings: recipe.contextLength,
    rope_theta: 10_000,
    rms_norm_eps: 1e-6,
    attention_bias: false,
    attention_dropout: 0,
    tie_word_embeddings: true,
    use_cache: true,
    eos_token_id: ids.turnEnd,
    pad_token_id: ids.documentEnd,
    torch_dtype: "bfloat16",
  };
}

/** The model's `generation_config.json`. */
export function generationConfigJson(recipe: Recipe): object {
  const ids = markIds(recipe.mergeCount);
  return {
    do_sample: true,
    temperature: 0.7,
    eos_token_id: [ids.turnEnd, ids.documentEnd],
    pad_token_id: ids.documentEnd,
  };
}

/**
 * Changes whenever something does that has mattered to the first steps of a run: a run must not go on with
 * another recipe than it began with. Its length matters from the moment when the learning rate falls.
 */
export function recipeFingerprint(recipe: Recipe, stepsDone: number): string {
  const { steps, decaySteps, ...always } = recipe;
  const falls = stepsDone > steps - decaySteps;
  const mattered = falls ? { ...always, steps, decaySteps } : always;
  return createHash("sha256").update(JSON.stringify(mattered)).digest("hex").slice(0, 16);
}

/** The learning rate of a step: a linear warm-up, the peak, and at the end half a cosine down to 1 % of it. */
export function learningRateAt(recipe: Recipe, step: number): number {
  const { steps, decaySteps, warmupSteps, peakLearningRate } = recipe;
  if (step < warmupSteps) return (peakLearningRate * (step + 1)) / warmupSteps;
  const progress = Math.max(0, (step - (steps - decaySteps)) / decaySteps);
  const floor = peakLearningRate / 100;
  return floor + (peakLearningRate - floor) * 0.5 * (1 + Math.cos(Math.PI * progress));
}
