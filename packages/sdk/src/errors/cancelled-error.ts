import { TinkerError, type TinkerErrorOptions } from "./tinker-error.js";

/** An operation that was given up: by `cancel()`, or because its client was closed. */
export class CancelledError extends TinkerError {
  override readonly name: string = "CancelledError";

  constructor(message = "The operation was cancelled.", options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "cancelled" });
  }
}
