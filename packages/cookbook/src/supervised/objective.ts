import type { Datum, ForwardBackwardOutput, TrainingClient } from "tinker-ts";
import { bitsPerByte, countTrained, meanNll, tokenNll, type ByteTokenizer } from "../data/index.js";
import { scoreData } from "../evaluation/index.js";

/** Where a batch stands in a run. */
export interface BatchPlace {
  /** Steps before it. */
  readonly step: number;
  /** How often the data was gone through before. */
  readonly epoch: number;
  /** Its number in the epoch. */
  readonly batch: number;
}

/** What a loop does with a batch: the pass that it submits, and what it tells of it. */
export interface Objective {
  /** Submits the pass; the loop submits the optimizer's step right behind it. */
  submit(
    training: TrainingClient,
    data: readonly Datum[],
    place: BatchPlace,
  ): PromiseLike<ForwardBackwardOutput>;
  /** What is told of the pass. */
  metrics(
    data: readonly Datum[],
    pass: ForwardBackwardOutput,
    place: BatchPlace,
  ): Readonly<Record<string, number>>;
}

/**
 * Learning to predict the next token. `train_mean_nll` weighs tokens as the loss does, so with the reduction
 * `mean` every example counts the same; `train_token_nll` counts every token the same.
 */
export function nextTokens(tokenizer: ByteTokenizer): Objective {
  return {
    submit: (training, data) => training.forwardBackward(data, "cross_entropy"),
    metrics(data, pass) {
      const scored = scoreData(data, pass);
      return {
        num_loss_tokens: data.reduce((sum, datum) => sum + countTrained(datum), 0),
        train_mean_nll: meanNll(scored),
        train_token_nll: tokenNll(scored),
        train_mean_bpb: bitsPerByte(scored, tokenizer),
      };
    },
  };
}
