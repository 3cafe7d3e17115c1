import type { Dice } from "./dice.js";
import { texts } from "./lexicon/entry.js";
import { people } from "./lexicon/people.js";
import { days } from "./lexicon/time.js";
import type { Passage } from "./passage.js";
import { commonWords } from "./skills/draw-words.js";

/** What comes back in a drill. */
interface Alphabet {
  readonly symbols: readonly string[];
  readonly separator: string;
}

/** The fewer symbols, the sooner a model finds out that they come back. */
const alphabets: readonly Alphabet[] = [
  { symbols: commonWords, separator: " " },
  { symbols: "0123456789".split(""), separator: "" },
  { symbols: "abcdefghijklmnopqrstuvwxyz".split(""), separator: " " },
  { symbols: texts(people), separator: " " },
  { symbols: days, separator: " " },
];

/**
 * Text that is nothing but symbols coming back: most of it can be told from what came before, and in no
 * other way. Looking back is what most skills are made of, and a model finds it in such text much sooner
 * than in conversations.
 */
export function writeDrill(dice: Dice): Passage[] {
  const rounds = dice.between(3, 5);
  const alphabet = dice.pick(alphabets);
  const [first = "", ...others] = dice.chance(0.5)
    ? repeatList(dice, alphabet, rounds)
    : repeatPairs(dice, alphabet, rounds);
  return [
    { text: first, taught: false },
    { text: others.map((round) => `\n${round}`).join(""), taught: true },
  ];
}

/** The same symbols in the same order. */
function repeatList(dice: Dice, { symbols, separator }: Alphabet, rounds: number): string[] {
  const line = dice.sample(symbols, dice.between(4, Math.min(16, symbols.length))).join(separator);
  return Array.from({ length: rounds }, () => line);
}

/** The same pairs of symbols in ever another order. */
function repeatPairs(dice: Dice, { symbols, separator }: Alphabet, rounds: number): string[] {
  const most = Math.min(7, Math.floor(symbols.length / 2));
  const drawn = dice.sample(symbols, 2 * dice.between(3, most));
  const pairs = drawn.flatMap((symbol, index) =>
    index % 2 === 0 ? [`${symbol}${separator}${drawn[index + 1]}`] : [],
  );
  return Array.from({ length: rounds }, () => dice.shuffle(pairs).join(separator));
}
