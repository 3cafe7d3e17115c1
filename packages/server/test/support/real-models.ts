import path from "node:path";

const fixtures = path.resolve(import.meta.dirname, "../../../engine/test/fixtures");

/** Tiny models with real weights: vocabulary 310, context 512. */
export const realModels = {
  qwen3: path.join(fixtures, "qwen3/model"),
  llama: path.join(fixtures, "llama/model"),
};
