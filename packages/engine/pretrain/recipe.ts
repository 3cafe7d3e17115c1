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
  /** Tokens per step, at least. */
  readonly batchTokens: number;
  readonly peakLearningRate: number;
  readonly warmupSteps: number;
  readonly weightDecay: number;
  readonly gradClipNorm: number;
  readonly seed: number;
}

/** How tinker-ts/sprout was made. */
export const sproutRecipe: Recipe = {
  hiddenSize: 256,
  layers: 4,
  heads: 4,
  kvHeads: 2,
  headDim: 64,
  intermediateSize: 768,
  contextLength: 1024,
  mergeCount: 1789,
  tokenizerDocuments: 20_000,
  steps: 2400,
  batchTokens: 4096,
  peakLearningRate: 2e-3,
  warmupSteps: 60,
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

/** Changes whenever the recipe does: a run must not go on with another recipe than it began with. */
export function recipeFingerprint(recipe: Recipe): string {
  return createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 16);
}

/** The learning rate of a step: a linear warm-up, then half a cosine down to a twentieth of the peak. */
export function learningRateAt(recipe: Recipe, step: number): number {
  const { steps, warmupSteps, peakLearningRate } = recipe;
  if (step < warmupSteps) return (peakLearningRate * (step + 1)) / warmupSteps;
  const progress = (step - warmupSteps) / Math.max(1, steps - warmupSteps);
  const floor = peakLearningRate / 20;
  return floor + (peakLearningRate - floor) * 0.5 * (1 + Math.cos(Math.PI * progress));
}
