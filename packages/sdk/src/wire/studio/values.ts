/** A number, or the word for one that JSON cannot say. */
export type StudioNumber = number | "NaN" | "Infinity" | "-Infinity";

/** Milliseconds since 1970. */
export type StudioTime = number;

/** The body of an answer that is an error. */
export interface StudioError {
  /** What is wrong and the way out. */
  readonly error: string;
  /** A word for programs. */
  readonly code: string;
}
