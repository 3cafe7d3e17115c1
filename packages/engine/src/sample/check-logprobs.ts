import { EngineError } from "../errors.js";
import type { DecodedRow } from "./decoder.js";

/** Throws unless all of a row is finite: nothing could be drawn from it. */
export function checkLogprobs({ logprobSum }: DecodedRow): void {
  if (Number.isFinite(logprobSum)) return;
  throw new EngineError(
    "not_finite",
    "the model's logits are not finite: its weights or the adapter's have grown out of range. Go back to " +
      "an earlier checkpoint and train with a lower learning rate.",
  );
}
