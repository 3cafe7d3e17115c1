/** Something that cannot be done, told in one line and perhaps a second with the way out. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly detail: string | undefined;

  constructor(message: string, detail?: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.detail = detail;
  }
}
