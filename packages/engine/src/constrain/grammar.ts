/** A part of a grammar; parts refer to each other by their index in the list of rules. */
export type Rule =
  /** This text, in UTF-8. */
  | { readonly kind: "text"; readonly text: string }
  /** One byte within one of these ranges. */
  | { readonly kind: "byte"; readonly ranges: readonly (readonly [first: number, last: number])[] }
  /** All of these, one after the other. */
  | { readonly kind: "sequence"; readonly items: readonly number[] }
  /** One of these. */
  | { readonly kind: "choice"; readonly items: readonly number[] }
  /** Repetition; `max` null means unbounded. */
  | {
      readonly kind: "repeat";
      readonly item: number;
      readonly min: number;
      readonly max: number | null;
    };

/**
 * The texts that a sample may have, as bytes. Plain data, so that it can be sent between threads.
 *
 * Every rule must be able to end, and none may begin with itself.
 */
export interface Grammar {
  readonly rules: readonly Rule[];
  /** The rule that the whole text follows. */
  readonly start: number;
}
