import type { ModelConfig } from "../files/model-config.js";

/** Fills rows with the embeddings of tokens, scaled as the model wants it. */
export function embedTokens(
  { hiddenSize: width, embeddingScale = 1 }: ModelConfig,
  embedding: Float32Array,
  tokens: Int32Array,
  rows: Float32Array,
): void {
  for (const [index, token] of tokens.entries()) {
    rows.set(embedding.subarray(token * width, (token + 1) * width), index * width);
  }
  if (embeddingScale === 1) return;
  const factor = Math.fround(embeddingScale);
  for (let i = 0; i < rows.length; i++) rows[i] = (rows[i] ?? 0) * factor;
}
