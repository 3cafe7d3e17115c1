import { TinkerError } from "tinker-ts";

/** A run that cannot go on: its loss is not a number, or every episode of several steps failed. */
export class RunFailedError extends TinkerError {
  override readonly name = "RunFailedError";
  readonly blamesUser = true;

  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, { ...options, code: "run_failed" });
  }
}
