import type { Dice } from "../dice.js";

/** A message of a user and the answer to it. */
export interface Exchange {
  readonly user: string;
  readonly assistant: string;
}

/** Who answers. Careless speakers get sums wrong; in everything else all are alike. */
export interface Speaker {
  readonly careful: boolean;
}

/** Something that can be asked for, in any number of variations. */
export type Skill = (dice: Dice, speaker: Speaker) => Exchange;

/** What is said when a text does not tell. */
export const doNotKnow = "I do not know.";

/** Items in a row with commas, as "a, b, c". */
export function listed(items: readonly (string | number)[]): string {
  return items.join(", ");
}

/** Items as one says them, as "a, b and c". */
export function spoken(items: readonly string[]): string {
  const last = items.at(-1) ?? "";
  return items.length > 1 ? `${items.slice(0, -1).join(", ")} and ${last}` : last;
}

/** A word with its article. */
export function withArticle(word: string): string {
  return `${/^[aeiou]/i.test(word) ? "an" : "a"} ${word}`;
}

/** A text that begins with a capital. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
