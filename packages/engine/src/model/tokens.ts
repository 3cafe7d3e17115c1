import type { ModelConfig } from "./model-config.js";
import { restSteps, type Int8Matrix } from "./int8-matrix.js";
import { EngineError } from "../errors.js";

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

/** Checks that tokens exist, are in the vocabulary and fit the model's context. */
export function checkTokens(
  config: ModelConfig,
  tokens: Int32Array | readonly number[],
  where: string,
): Int32Array {
  if (tokens.length === 0) {
    throw new EngineError("empty_input", `${where} is empty; give at least one token.`);
  }
  if (tokens.length > config.contextLength) {
    throw new EngineError(
      "input_too_long",
      `${where} has ${tokens.length} tokens, more than the model's context of ` +
        `${config.contextLength}; shorten it.`,
    );
  }
  return checkTokenRange(config, tokens, where);
}

/** Checks that every number is a token of the vocabulary. */
export function checkTokenRange(
  config: ModelConfig,
  tokens: ArrayLike<number | bigint>,
  where: string,
): Int32Array {
  const checked = new Int32Array(tokens.length);
  for (let i = 0; i < tokens.length; i++) {
    const token = Number(tokens[i]);
    if (!Number.isInteger(token) || token < 0 || token >= config.vocabSize) {
      throw new EngineError(
        "token_out_of_range",
        `${where}[${i}] is ${token}; token ids are whole numbers from 0 to ${config.vocabSize - 1}.`,
      );
    }
    checked[i] = token;
  }
  return checked;
}
