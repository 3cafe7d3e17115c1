/** The cause of an error: the caller's input, or a failure inside this package. */
export type HubErrorCategory = "user" | "internal";

/** Every error this package throws on purpose; `code` is stable, the message names the field and a fix. */
export class HubError extends Error {
  override readonly name = "HubError";
  readonly code: string;
  readonly category: HubErrorCategory;

  constructor(
    code: string,
    message: string,
    options: { category?: HubErrorCategory; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.category = options.category ?? "user";
  }
}
