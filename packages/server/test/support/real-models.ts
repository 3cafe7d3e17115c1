import path from "node:path";

const fixtures = path.resolve(import.meta.dirname, "../../../engine/test/fixtures");

/** Tiny models with real weights: vocabulary 310, context 512. */
export const realModels = {
  qwen3: path.join(fixtures, "qwen3/model"),
  llama: path.join(fixtures, "llama/model"),
};

/** Some with layers that have a state, of the same vocabulary and context. */
export const recurrentModels = {
  qwen3_5: path.join(fixtures, "qwen3_5/model"),
  lfm2: path.join(fixtures, "lfm2/model"),
  granite_hybrid: path.join(fixtures, "granite_hybrid/model"),
};
