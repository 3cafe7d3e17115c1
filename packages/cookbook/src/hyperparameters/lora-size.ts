import { ArgumentError } from "tinker-ts";
import { modelSizes } from "./model-sizes.js";

/** Options of an adapter. */
export interface LoraSizeOptions {
  /** @default 32 */
  readonly rank?: number | undefined;
  /** @default true */
  readonly trainMlp?: boolean | undefined;
  /** @default true */
  readonly trainAttn?: boolean | undefined;
  /** @default true */
  readonly trainUnembed?: boolean | undefined;
}

/** The number of parameters of a model's adapter. */
export function loraParameterCount(model: string, options: LoraSizeOptions = {}): number {
  const { rank = 32, trainMlp = true, trainAttn = true, trainUnembed = true } = options;
  if (!trainMlp && !trainAttn && !trainUnembed) {
    throw new ArgumentError("trainMlp", "one of trainMlp, trainAttn and trainUnembed must be true");
  }
  if (!Number.isSafeInteger(rank) || rank < 1) {
    throw new ArgumentError("rank", `must be an integer of at least 1, not ${rank}`);
  }
  const perRank = modelSizes(model)?.perRank;
  if (!perRank)
    throw new ArgumentError("model", `the adapter sizes of ${model} are not known here`);
  const { mlp, attention, unembedding } = perRank;
  const perUnit =
    (trainMlp ? mlp : 0) + (trainAttn ? attention : 0) + (trainUnembed ? unembedding : 0);
  return perUnit * rank;
}

/** The smallest rank with at least as many adapter parameters as tokens to learn: a rule of thumb. */
export function rankForTokens(model: string, trainedTokens: number): number {
  return Math.max(1, Math.ceil(trainedTokens / loraParameterCount(model, { rank: 1 })));
}
