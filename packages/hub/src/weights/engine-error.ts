/** The cause of an engine error: the caller's input, or a failure inside this package. */
export type EngineErrorCategory = "user" | "internal";

/**
 * Every error about the files of models and adapters, and every error of the engine that computes with them:
 * one class, so that callers handle one kind. `code` is stable; the message names the field and a fix.
 */
export class EngineError extends Error {
  override readonly name = "EngineError";
  readonly code: string;
  readonly category: EngineErrorCategory;

  constructor(
    code: string,
    message: string,
    options: { category?: EngineErrorCategory; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.category = options.category ?? "user";
  }
}
