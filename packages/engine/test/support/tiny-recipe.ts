import { sproutRecipe, type Recipe } from "../../pretrain/recipe.js";

/** A recipe that is done in seconds; what it makes has learned little more than which letters are common. */
export const tinyRecipe: Recipe = {
  ...sproutRecipe,
  hiddenSize: 32,
  layers: 2,
  heads: 2,
  kvHeads: 1,
  headDim: 16,
  intermediateSize: 64,
  mergeCount: 100,
  tokenizerDocuments: 200,
  steps: 12,
  decaySteps: 4,
  batchTokens: 600,
  warmupSteps: 2,
  peakLearningRate: 1e-2,
};
