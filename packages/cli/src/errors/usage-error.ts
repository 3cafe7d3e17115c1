/** A command line that cannot be understood; nothing was done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** The words of the command that was meant, as far as they were understood. */
  readonly words: readonly string[];

  constructor(message: string, words: readonly string[] = []) {
    super(message);
    this.words = words;
  }
}
