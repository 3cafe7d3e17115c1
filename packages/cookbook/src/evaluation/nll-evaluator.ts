import type { Datum, ForwardBackwardOutput } from "tinker-ts";
import {
  bitsPerByte,
  meanNll,
  tokenNll,
  weightsOf,
  type ByteTokenizer,
  type ScoredTokens,
} from "../data/index.js";
import type { Evaluator } from "./evaluator.js";

/** How held-out data is judged. */
export interface NllEvaluatorOptions {
  /** Goes before the names of the metrics. @default "test" */
  readonly name?: string | undefined;
  /** Adds bits per byte to the metrics. */
  readonly tokenizer?: ByteTokenizer | undefined;
}

/** The negative log-likelihood of data that is not trained: `NAME/nll`, `NAME/token_nll` and `NAME/bpb`. */
export function nllEvaluator(
  data: readonly Datum[],
  { name = "test", tokenizer }: NllEvaluatorOptions = {},
): Evaluator {
  return {
    name,
    async evaluate({ training, signal }) {
      const output = await training.forward(data, "cross_entropy", { signal });
      const scored = scoreData(data, output);
      return {
        [`${name}/nll`]: meanNll(scored),
        [`${name}/token_nll`]: tokenNll(scored),
        ...(tokenizer && { [`${name}/bpb`]: bitsPerByte(scored, tokenizer) }),
      };
    },
  };
}

/** Data with the log-probabilities that a pass gave them. */
export function scoreData(
  data: readonly Datum[],
  { lossFnOutputs }: Pick<ForwardBackwardOutput, "lossFnOutputs">,
): ScoredTokens[] {
  return data.map((datum, index) => ({
    logprobs: lossFnOutputs[index]!["logprobs"]!.data as ArrayLike<number>,
    weights: weightsOf(datum),
    targets: datum.lossFnInputs["target_tokens"]!.data,
  }));
}
