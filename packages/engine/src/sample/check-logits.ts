import { EngineError } from "../errors.js";

/** Throws unless a row of logits, by its log-sum-exp, is finite: nothing could be drawn from it. */
export function checkLogits(logSumExp: number): void {
  if (Number.isFinite(logSumExp)) return;
  throw new EngineError(
    "not_finite",
    "the model's logits are not finite: its weights or the adapter's have grown out of range. Go back to " +
      "an earlier checkpoint and train with a lower learning rate.",
  );
}
