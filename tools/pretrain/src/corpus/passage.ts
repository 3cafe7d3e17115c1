/** A part of a document. */
export interface Passage {
  readonly text: string;
  /**
   * Whether it is there to be learned. What is merely read, such as the words that somebody happens to
   * ask about, is mostly chance: learning it as eagerly would drown what can be learned.
   */
  readonly taught: boolean;
}
