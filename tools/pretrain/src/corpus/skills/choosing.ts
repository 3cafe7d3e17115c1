import type { Dice } from "../dice.js";
import { animals } from "../lexicon/animals.js";
import { texts } from "../lexicon/entry.js";
import { countedFood } from "../lexicon/food.js";
import { people } from "../lexicon/people.js";
import { clothes, colours, places, things } from "../lexicon/things.js";
import { days, months } from "../lexicon/time.js";
import { drawWords } from "./draw-words.js";
import { listed, spoken, type Exchange } from "./skill.js";

interface Kind {
  /** With its article. */
  readonly one: string;
  readonly members: readonly string[];
}

const kinds: readonly Kind[] = [
  { one: "an animal", members: texts(animals) },
  { one: "a fruit", members: texts(countedFood.filter(({ kind }) => kind === "fruit")) },
  { one: "a vegetable", members: texts(countedFood.filter(({ kind }) => kind === "vegetable")) },
  { one: "a colour", members: texts(colours) },
  { one: "a place", members: texts(places) },
  { one: "a name", members: texts(people) },
  { one: "a day", members: days },
  { one: "a month", members: months },
  { one: "something to wear", members: texts(clothes) },
  { one: "a tool", members: texts(things) },
];

/** Finds the word that does not belong to the others. */
export function oddOneOut(dice: Dice): Exchange {
  const [kind, other] = dice.sample(kinds, 2);
  if (kind === undefined || other === undefined) throw new Error("there are at least two kinds");
  const odd = dice.pick(other.members.filter((word) => !kind.members.includes(word)));
  const items = dice.shuffle([odd, ...dice.sample(kind.members, dice.between(2, 4))]);
  const user = dice.pick([
    `Which one does not belong? ${listed(items)}`,
    `Find the odd one out: ${listed(items)}`,
    `One word is different. Which one? ${listed(items)}`,
  ]);
  return { user, assistant: odd };
}

/** Finds the word of a kind. */
export function oneOfKind(dice: Dice): Exchange {
  const [kind, ...others] = dice.sample(kinds, dice.between(3, 4));
  if (kind === undefined) throw new Error("there are at least three kinds");
  const found = dice.pick(kind.members);
  const rest = others.map(({ members }) =>
    dice.pick(members.filter((word) => !kind.members.includes(word))),
  );
  const items = listed(dice.shuffle([found, ...rest]));
  const user = dice.pick([
    `Which of these is ${kind.one}? ${items}`,
    `Find ${kind.one}: ${items}`,
    `One of these is ${kind.one}. Which one? ${items}`,
  ]);
  return { user, assistant: found };
}

/** Says what a word names. */
export function whatKind(dice: Dice): Exchange {
  const kind = dice.pick(kinds.slice(0, -1));
  const word = dice.pick(kind.members);
  const user = dice.pick([`What is ${word}?`, `What kind of word is ${word}?`]);
  return { user, assistant: `${word} is ${kind.one}.` };
}

/** Names some members of a kind. */
export function nameSome(dice: Dice): Exchange {
  const [plural, members] = dice.pick([
    ["animals", texts(animals)],
    ["colours", texts(colours)],
    ["names", texts(people)],
    ["places", texts(places)],
    ["days", days],
  ] as const);
  const [word, count] = dice.pick([
    ["two", 2],
    ["three", 3],
    ["four", 4],
  ] as const);
  const user = dice.pick([`Name ${word} ${plural}.`, `Tell me ${word} ${plural}.`]);
  return { user, assistant: spoken(dice.sample(members, count)) };
}

/** Says whether a list has a word. */
export function isInList(dice: Dice): Exchange {
  const [absent = "", ...words] = drawWords(dice, dice.between(3, 6));
  const inList = dice.chance(0.5);
  const word = inList ? dice.pick(words) : absent;
  const user = dice.pick([
    `Is ${word} in this list? ${listed(words)}`,
    `Does this list have ${word} in it? ${listed(words)}`,
  ]);
  return { user, assistant: inList ? `Yes, ${word} is there.` : `No, ${word} is not there.` };
}
