import { EngineError } from "../errors.js";
import type { ModelConfig } from "./model-config.js";

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
