import type { ModelConfig } from "./model-config.js";
import { restSteps, type Int8Matrix } from "./int8-matrix.js";

/** Fills rows with the embeddings of tokens, scaled as the model wants it. */
export function embedTokens(
  { hiddenSize: width, embeddingScale = 1 }: ModelConfig,
  embedding: Float32Array | Int8Matrix,
  tokens: Int32Array,
  rows: Float32Array,
): void {
  for (const [index, token] of tokens.entries()) {
    const target = rows.subarray(index * width, (index + 1) * width);
    if (embedding instanceof Float32Array) {
      target.set(embedding.subarray(token * width, (token + 1) * width));
    } else {
      readRow(embedding, token, target);
    }
  }
  if (embeddingScale === 1) return;
  const factor = Math.fround(embeddingScale);
  for (let i = 0; i < rows.length; i++) rows[i] = (rows[i] ?? 0) * factor;
}

function readRow({ values, rest, scale }: Int8Matrix, row: number, target: Float32Array): void {
  const start = row * target.length;
  const step = scale[row] ?? 0;
  for (let i = 0; i < target.length; i++) {
    const fraction = (rest?.[start + i] ?? 0) / restSteps;
    target[i] = ((values[start + i] ?? 0) + fraction) * step;
  }
}
