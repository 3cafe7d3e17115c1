/** An invalid command line; nothing was done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** The words of the command, as far as they are valid. */
  readonly words: readonly string[];

  constructor(message: string, words: readonly string[] = []) {
    super(message);
    this.words = words;
  }
}
