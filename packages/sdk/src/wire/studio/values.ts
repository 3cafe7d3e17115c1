/** A number, or the name of one that JSON cannot express. */
export type StudioNumber = number | "NaN" | "Infinity" | "-Infinity";

/** Milliseconds since 1970. */
export type StudioTime = number;

/** The body of an answer that is an error. */
export interface StudioError {
  /** The problem and how to fix it. */
  readonly error: string;
  /** A stable code for programs. */
  readonly code: string;
}
