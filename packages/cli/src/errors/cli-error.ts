/** An error of a command: one line, and optionally a second one with a suggestion. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly detail: string | undefined;

  constructor(message: string, detail?: string, options: { readonly cause?: unknown } = {}) {
    super(message, options);
    this.detail = detail;
  }
}
