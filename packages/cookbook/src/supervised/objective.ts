import type { Datum, ForwardBackwardOutput, TrainingClient } from "tinker-ts";
import { bitsPerByte, countTrained, meanNll, tokenNll, type ByteTokenizer } from "../data/index.js";
import { scoreData } from "../evaluation/index.js";

/** The place of a batch in a run. */
export interface BatchPlace {
  /** Steps before it. */
  readonly step: number;
  /** Passes over the data before it. */
  readonly epoch: number;
  /** Its index in the epoch. */
  readonly batch: number;
}

/** What a loop does with a batch: the pass to submit, and the metrics of the result. */
export interface Objective {
  /** The metric to minimize. */
  readonly lossMetric: string;
  /** Submits the pass; the loop submits the optimizer's step right behind it. */
  submit(
    training: TrainingClient,
    data: readonly Datum[],
    place: BatchPlace,
  ): PromiseLike<ForwardBackwardOutput>;
  /** Metrics of the pass. */
  metrics(
    data: readonly Datum[],
    pass: ForwardBackwardOutput,
    place: BatchPlace,
  ): Readonly<Record<string, number>>;
}

/**
 * Next-token prediction. `train_mean_nll` weighs tokens as the loss does, so with the reduction `mean` every
 * example counts the same; `train_token_nll` counts every token the same.
 */
export function nextTokens(tokenizer: ByteTokenizer): Objective {
  return {
    lossMetric: "train_mean_nll",
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
