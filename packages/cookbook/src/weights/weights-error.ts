import { TinkerError, type TinkerErrorOptions } from "tinker-ts";

/** Weights that do not fit together, or a file that is not what it should be; nothing was written. */
export class WeightsError extends TinkerError {
  override readonly name: string = "WeightsError";
  readonly blamesUser = true;

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "weights" });
  }
}
