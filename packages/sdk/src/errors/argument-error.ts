import { TinkerError, type BlamesUser, type TinkerErrorOptions } from "./tinker-error.js";

/** An argument that cannot be used; thrown before any request is made. */
export class ArgumentError extends TinkerError implements BlamesUser {
  override readonly name: string = "ArgumentError";
  /** The argument or field at fault, as the caller wrote it: `samplingParams.temperature`. */
  readonly field: string;
  /** Always: the argument came from the caller. */
  readonly blamesUser = true;

  constructor(field: string, problem: string, options: TinkerErrorOptions = {}) {
    super(`${field}: ${problem}`, { ...options, code: "invalid_argument" });
    this.field = field;
  }
}
