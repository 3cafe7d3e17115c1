import type { Datum, ForwardBackwardOutput, OptimStepResponse } from "tinker-ts";
import { bitsPerByte, countTrained, meanNll, tokenNll, type ByteTokenizer } from "../data/index.js";
import { scoreData } from "../evaluation/index.js";

/** How much data a step has; known before it runs. */
export interface StepSize {
  readonly sequences: number;
  /** Positions that the model reads. */
  readonly tokens: number;
  /** Tokens that it learns, whatever their weights. */
  readonly trainedTokens: number;
}

/** Counts the data of a step. */
export function sizeOf(data: readonly Datum[]): StepSize {
  return {
    sequences: data.length,
    tokens: data.reduce((sum, { modelInput }) => sum + modelInput.length, 0),
    trainedTokens: data.reduce((sum, datum) => sum + countTrained(datum), 0),
  };
}

/**
 * What a step tells. `train_mean_nll` weighs tokens as the loss does, so with the reduction `mean` every
 * example counts the same; `train_token_nll` counts every token the same.
 */
export function stepMetrics(
  data: readonly Datum[],
  size: StepSize,
  pass: ForwardBackwardOutput,
  update: OptimStepResponse,
  tokenizer: ByteTokenizer,
): Record<string, number> {
  const scored = scoreData(data, pass);
  return {
    num_sequences: size.sequences,
    num_tokens: size.tokens,
    num_loss_tokens: size.trainedTokens,
    train_mean_nll: meanNll(scored),
    train_token_nll: tokenNll(scored),
    train_mean_bpb: bitsPerByte(scored, tokenizer),
    ...update.metrics,
  };
}
