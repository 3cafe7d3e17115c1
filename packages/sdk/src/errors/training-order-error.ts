import { TinkerError, type TinkerErrorOptions } from "./tinker-error.js";

/**
 * A training client that cannot go on, because it is not known whether the server has an earlier
 * operation; running later ones could train on the wrong state without anybody noticing.
 */
export class TrainingOrderError extends TinkerError {
  override readonly name: string = "TrainingOrderError";

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "training_order" });
  }
}
