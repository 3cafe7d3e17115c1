import { TinkerError, type TinkerErrorOptions } from "./tinker-error.js";

/** No usable credential: missing, of an unknown form, or a credential command that printed nothing. */
export class CredentialError extends TinkerError {
  override readonly name: string = "CredentialError";

  constructor(message: string, options: TinkerErrorOptions = {}) {
    super(message, { ...options, code: "credential" });
  }
}
