import type { Dice } from "../dice.js";
import { numberWords } from "../lexicon/time.js";
import { commonWords, drawWords } from "./draw-words.js";
import { listed, type Exchange } from "./skill.js";

/** Counts the words of a list. */
export function countWords(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(1, 7));
  const text = dice.chance(0.5) ? words.join(" ") : listed(words);
  const user = dice.pick([
    `How many words are there? ${text}`,
    `Count the words: ${text}`,
    `How many words do you see? ${text}`,
  ]);
  return { user, assistant: String(words.length) };
}

/** Counts the letters of a word. */
export function countLetters(dice: Dice): Exchange {
  const word = dice.pick(commonWords);
  const user = dice.pick([`How many letters does ${word} have?`, `Count the letters of ${word}.`]);
  return { user, assistant: String(word.length) };
}

/** Counts how often a word is there. */
export function countRepeats(dice: Dice): Exchange {
  const [word = "", other = ""] = drawWords(dice, 2);
  const count = dice.between(1, 4);
  const items = dice.shuffle([
    ...Array.from({ length: count }, () => word),
    ...Array.from({ length: dice.between(1, 3) }, () => other),
  ]);
  const user = `How often do you see ${word}? ${items.join(" ")}`;
  return { user, assistant: String(count) };
}

/** Counts up or down. */
export function countOn(dice: Dice): Exchange {
  const low = dice.between(0, 15);
  const high = low + dice.between(2, 5);
  const numbers = Array.from({ length: high - low + 1 }, (_, index) => low + index);
  return dice.pick([
    { user: `Count from ${low} to ${high}.`, assistant: listed(numbers) },
    { user: `Count down from ${high} to ${low}.`, assistant: listed(numbers.toReversed()) },
  ]);
}

/** Says the number before or after another. */
export function neighbourOfNumber(dice: Dice): Exchange {
  const number = dice.between(1, 98);
  return dice.pick([
    { user: `Which number comes after ${number}?`, assistant: String(number + 1) },
    { user: `Which number comes before ${number}?`, assistant: String(number - 1) },
    { user: `What comes after ${number}?`, assistant: String(number + 1) },
  ]);
}

/** Says which of two numbers is larger or smaller. */
export function compareNumbers(dice: Dice): Exchange {
  const [one = 0, other = 0] = dice.sample(hundred, 2);
  return dice.pick([
    { user: `Which is larger, ${one} or ${other}?`, assistant: String(Math.max(one, other)) },
    { user: `Which is smaller, ${one} or ${other}?`, assistant: String(Math.min(one, other)) },
  ]);
}

const hundred = Array.from({ length: 100 }, (_, number) => number);

/** Puts numbers in order. */
export function sortNumbers(dice: Dice): Exchange {
  const numbers = dice.sample(hundred.slice(0, 31), dice.between(2, 5));
  const rising = numbers.toSorted((a, b) => a - b);
  return dice.pick([
    { user: `Put these in order: ${listed(numbers)}`, assistant: listed(rising) },
    { user: `Sort from small to large: ${listed(numbers)}`, assistant: listed(rising) },
    { user: `Which is the largest? ${listed(numbers)}`, assistant: String(rising.at(-1)) },
    { user: `Which is the smallest? ${listed(numbers)}`, assistant: String(rising.at(0)) },
  ]);
}

/** Writes a number as a word, or the other way round. */
export function numberWord(dice: Dice): Exchange {
  const number = dice.below(numberWords.length);
  const word = numberWords[number] ?? "";
  return dice.pick([
    { user: `Write ${number} as a word.`, assistant: word },
    { user: `Write ${word} as a number.`, assistant: String(number) },
    { user: `Which number is ${word}?`, assistant: String(number) },
  ]);
}
