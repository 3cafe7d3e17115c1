import type { Dice } from "../dice.js";
import { texts } from "../lexicon/entry.js";
import { people } from "../lexicon/people.js";
import { drawWord, drawWords } from "./draw-words.js";
import { listed, spoken, type Exchange } from "./skill.js";

/** Puts one word in the place of another. */
export function replaceWord(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(2, 6));
  const place = dice.below(words.length);
  const old = words[place] ?? "";
  const fresh = dice.until(
    () => drawWord(dice),
    (word) => !words.includes(word),
  );
  const user = dice.pick([
    `Write ${fresh} instead of ${old}: ${words.join(" ")}`,
    `Replace ${old} with ${fresh}: ${words.join(" ")}`,
    `Change "${old}" to "${fresh}" in this: ${words.join(" ")}`,
  ]);
  return { user, assistant: words.with(place, fresh).join(" ") };
}

/** Leaves a word out. */
export function removeWord(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(2, 6));
  const place = dice.below(words.length);
  const gone = words[place] ?? "";
  const user = dice.pick([
    `Leave out ${gone}: ${words.join(" ")}`,
    `Remove "${gone}" from this: ${words.join(" ")}`,
    `Say this without ${gone}: ${words.join(" ")}`,
  ]);
  return { user, assistant: words.toSpliced(place, 1).join(" ") };
}

/** Adds a word at one end. */
export function addWord(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(1, 5));
  const fresh = dice.until(
    () => drawWord(dice),
    (word) => !words.includes(word),
  );
  const text = words.join(" ");
  return dice.pick([
    { user: `Put ${fresh} at the end: ${text}`, assistant: `${text} ${fresh}` },
    { user: `Put ${fresh} at the beginning: ${text}`, assistant: `${fresh} ${text}` },
    { user: `Add "${fresh}" after this: ${text}`, assistant: `${text} ${fresh}` },
  ]);
}

/** Writes a list in another form. */
export function relist(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(2, 5));
  const plain = words.join(" ");
  return dice.pick([
    { user: `Put commas between the words: ${plain}`, assistant: listed(words) },
    { user: `Write as a list: ${plain}`, assistant: words.map((word) => `- ${word}`).join("\n") },
    { user: `Say it as a row with "and": ${plain}`, assistant: spoken(words) },
    { user: `Take the commas out: ${listed(words)}`, assistant: plain },
    { user: `Number these words: ${plain}`, assistant: numbered(words) },
    { user: `Write each word on its own line: ${listed(words)}`, assistant: words.join("\n") },
  ]);
}

function numbered(words: readonly string[]): string {
  return words.map((word, index) => `${index + 1}. ${word}`).join("\n");
}

/** Puts a name into a sentence. */
export function fillName(dice: Dice): Exchange {
  const name = dice.pick(texts(people));
  const [one = "", other = ""] = drawWords(dice, 2);
  const sentence = dice.pick([
    `X likes the ${one} and the ${other}.`,
    `The ${one} of X is near the ${other}.`,
    `Give the ${one} to X.`,
    `X, where is the ${one}?`,
  ]);
  const user = dice.pick([`Write ${name} for X: ${sentence}`, `X is ${name}. ${sentence}`]);
  return { user, assistant: sentence.replace("X", name) };
}
