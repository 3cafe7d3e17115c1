import type { Dice } from "../dice.js";
import { texts } from "../lexicon/entry.js";
import { people } from "../lexicon/people.js";
import { commonWords, drawWords } from "./draw-words.js";
import { listed, type Exchange } from "./skill.js";

const ordinals = ["first", "second", "third", "fourth", "fifth"];

/** Picks a word by its place. */
export function wordAtPlace(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(2, 6));
  const text = dice.chance(0.5) ? words.join(" ") : listed(words);
  const place = dice.chance(0.4) ? words.length - 1 : dice.below(Math.min(5, words.length));
  const isLast = place === words.length - 1;
  const name = isLast ? "last" : (ordinals[place] ?? "last");
  const phrase = dice.pick([
    `What is the ${name} word? ${text}`,
    `Which word comes ${name}? ${text}`,
    `Tell me the ${name} word of: ${text}`,
    `${text}\nWhat is the ${name} word?`,
  ]);
  return { user: phrase, assistant: words[place] ?? "" };
}

/** Picks the neighbour of a word. */
export function neighbourOfWord(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(3, 6));
  const text = dice.chance(0.5) ? words.join(" ") : listed(words);
  const place = dice.below(words.length - 1);
  const [before = "", after = ""] = words.slice(place, place + 2);
  return dice.pick([
    { user: `Which word comes after ${before}? ${text}`, assistant: after },
    { user: `Which word comes before ${after}? ${text}`, assistant: before },
    { user: `What follows "${before}" in this list? ${text}`, assistant: after },
  ]);
}

/** Picks a letter by its place. */
export function letterAtPlace(dice: Dice): Exchange {
  const word = dice.pick([...commonWords, ...texts(people)]);
  const first = dice.chance(0.5);
  const name = first ? "first" : "last";
  const letter = (first ? word.at(0) : word.at(-1)) ?? "";
  const user = dice.pick([
    `What is the ${name} letter of ${word}?`,
    `Which letter comes ${name} in "${word}"?`,
    `Tell me the ${name} letter of ${word}.`,
  ]);
  return { user, assistant: letter };
}

/** Writes a word letter by letter. */
export function spell(dice: Dice): Exchange {
  const word = dice.chance(0.7) ? dice.pick(commonWords) : dice.pick(texts(people));
  const user = dice.pick([
    `Spell ${word}.`,
    `How do you spell "${word}"?`,
    `Please spell ${word}.`,
  ]);
  return { user, assistant: word.split("").join("-") };
}

/** Reads a word that is written letter by letter. */
export function unspell(dice: Dice): Exchange {
  const word = dice.chance(0.7) ? dice.pick(commonWords) : dice.pick(texts(people));
  const spelled = word.split("").join("-");
  const user = dice.pick([`Which word is ${spelled}?`, `Read this: ${spelled}`]);
  return { user, assistant: word };
}

/** The word with a given first letter. */
export function wordByLetter(dice: Dice): Exchange {
  const chosen = dice.pick(commonWords);
  const letter = chosen.charAt(0);
  const others = dice.sample(
    commonWords.filter((word) => !word.startsWith(letter)),
    dice.between(2, 4),
  );
  const text = listed(dice.shuffle([chosen, ...others]));
  const user = dice.pick([
    `Which word begins with ${letter}? ${text}`,
    `Find the word that starts with "${letter}": ${text}`,
  ]);
  return { user, assistant: chosen };
}
