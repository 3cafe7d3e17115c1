import { at } from "../util/arrays.js";
import type { DecodedRow } from "./decoder.js";
import { largest } from "./pick-token.js";
import type { CheckedSampleOptions } from "./request.js";

/** Most likely tokens of a position with their log-probabilities, most likely first. */
export type TopTokens = readonly { readonly token: number; readonly logprob: number }[];

/** Log-probabilities to report for a drawn token: always those of the model itself. */
export function reportedLogprobs(
  row: DecodedRow,
  token: number,
  options: Pick<
    CheckedSampleOptions,
    "logprobsMode" | "temperature" | "topLogprobs" | "logprobTokens"
  >,
): { logprob: number; top?: TopTokens } {
  const { logprobsMode, temperature, topLogprobs, logprobTokens } = options;
  const { logits, logprobs } = row;
  const isTempered = temperature !== 0 && temperature !== 1;
  const total = logprobsMode === "raw" && isTempered ? logSumExp(logits) : undefined;
  const logprobOf = (id: number): number =>
    total === undefined ? at(logprobs, id) : at(logits, id) - total;
  const logprob = logprobOf(token);
  if (topLogprobs === 0 && logprobTokens.length === 0) return { logprob };
  const ids = new Set([...(topLogprobs > 0 ? largest(logits, topLogprobs) : []), ...logprobTokens]);
  return { logprob, top: Array.from(ids, (id) => ({ token: id, logprob: logprobOf(id) })) };
}

function logSumExp(logits: Float32Array): number {
  let top = -Infinity;
  for (const logit of logits) if (logit > top) top = logit;
  let sum = 0;
  for (const logit of logits) sum += Math.exp(logit - top);
  return top + Math.log(sum);
}
