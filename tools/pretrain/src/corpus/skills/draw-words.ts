import type { Dice, Weighted } from "../dice.js";
import { animals } from "../lexicon/animals.js";
import { texts } from "../lexicon/entry.js";
import { countedFood } from "../lexicon/food.js";
import { people } from "../lexicon/people.js";
import { clothes, colours, places, things, treasures } from "../lexicon/things.js";
import { days } from "../lexicon/time.js";
import { opposites, verbs } from "../lexicon/words.js";

/** Every plain word that lists are made of. */
export const commonWords: readonly string[] = [
  ...new Set([
    ...[animals, countedFood, things, treasures, clothes, colours, places, verbs].flatMap(texts),
    ...opposites.flat(),
  ]),
];

const consonants = "bdfgklmnprstvz".split("");
const vowels = "aeiou".split("");

/** A word that does not exist, such as "tumira": skills must not depend on known words. */
export function drawMadeUpWord(dice: Dice): string {
  const syllables = dice.between(2, 3);
  let word = "";
  for (let i = 0; i < syllables; i++) word += dice.pick(consonants) + dice.pick(vowels);
  return word + (dice.chance(0.3) ? dice.pick(consonants) : "");
}

const sources: readonly Weighted<(dice: Dice) => string>[] = [
  { weight: 8, value: (dice) => dice.pick(commonWords) },
  { weight: 2, value: (dice) => dice.pick(texts(people)) },
  { weight: 3, value: drawMadeUpWord },
  { weight: 1, value: (dice) => String(dice.between(0, 99)) },
  { weight: 0.5, value: (dice) => dice.pick(days) },
];

/** A word of any kind. */
export function drawWord(dice: Dice): string {
  return dice.pickWeighted(sources)(dice);
}

/** Different words of any kind. */
export function drawWords(dice: Dice, count: number): readonly string[] {
  const words: string[] = [];
  while (words.length < count) {
    words.push(
      dice.until(
        () => drawWord(dice),
        (word) => !words.includes(word),
      ),
    );
  }
  return words;
}

const symbols = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~".split("");
const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".split("");
const foreign = Array.from("äöüßéèñçåøæžščłαβγδλπжшяи日本語中文한글🌱🙂→€°");

/** Characters without meaning, so that every kind of text can at least be copied. */
export function drawNoise(dice: Dice): string {
  const alphabets = [symbols, letters, [...symbols, ...letters], [...letters, ...foreign]];
  const alphabet = dice.pick(alphabets);
  const length = dice.between(2, 8);
  return Array.from({ length }, () => dice.pick(alphabet)).join("");
}
