import type { Dice } from "../dice.js";
import { texts } from "../lexicon/entry.js";
import { people } from "../lexicon/people.js";
import { clothes, colours, places, spots, treasures } from "../lexicon/things.js";
import { drawWords } from "./draw-words.js";
import { capitalized, doNotKnow, withArticle, type Exchange } from "./skill.js";

/** Finds who has what among several. */
export function whoHasWhat(dice: Dice): Exchange {
  const names = dice.sample(texts(people), dice.between(2, 4));
  const goods = dice
    .sample([...texts(treasures), ...texts(clothes)], names.length)
    .map((thing) => `${dice.pick(texts(colours))} ${thing}`);
  const facts = names.map((name, index) => `${name} has ${withArticle(goods[index] ?? "")}.`);
  const text = facts.join(" ");
  const chosen = dice.below(names.length);
  const name = names[chosen] ?? "";
  const good = goods[chosen] ?? "";
  if (dice.chance(0.3)) {
    const stranger = dice.pick(texts(people).filter((person) => !names.includes(person)));
    return { user: `${text} What does ${stranger} have?`, assistant: doNotKnow };
  }
  return dice.pick([
    { user: `${text} What does ${name} have?`, assistant: `${capitalized(withArticle(good))}.` },
    { user: `${text} Who has the ${good}?`, assistant: `${name}.` },
  ]);
}

/** Finds where somebody or something is. */
export function whereIsIt(dice: Dice): Exchange {
  const names = dice.sample(texts(people), dice.between(2, 3));
  const where = dice.sample(places, names.length).map(({ at = "", text }) => `${at} the ${text}`);
  const things = dice.sample(texts(treasures), 2);
  const lies = dice.sample(texts(spots), 2);
  const text = dice
    .shuffle([
      ...names.map((name, index) => `${name} is ${where[index]}.`),
      ...things.map((thing, index) => `The ${thing} is ${lies[index]}.`),
    ])
    .join(" ");
  if (dice.chance(0.4)) {
    const thing = dice.below(things.length);
    return {
      user: `${text} Where is the ${things[thing]}?`,
      assistant: `${capitalized(lies[thing] ?? "")}.`,
    };
  }
  const person = dice.below(names.length);
  return dice.pick([
    {
      user: `${text} Where is ${names[person]}?`,
      assistant: `${capitalized(where[person] ?? "")}.`,
    },
    { user: `${text} Who is ${where[person]}?`, assistant: `${names[person]}.` },
  ]);
}

/** Looks a word up in a small table. */
export function lookUp(dice: Dice): Exchange {
  const count = dice.between(2, 5);
  const words = drawWords(dice, 2 * count);
  const keys = words.slice(0, count);
  const values = words.slice(count);
  const sign = dice.pick([":", " =", " ->", " means"]);
  const rows = keys.map((key, index) => `${key}${sign} ${values[index]}`);
  const table = dice.chance(0.5) ? rows.join("\n") : rows.join(", ");
  const chosen = dice.below(count);
  const user = dice.pick([
    `${table}\nWhat goes with ${keys[chosen]}?`,
    `${table}\n${keys[chosen]}${sign} ?`,
    `Look up ${keys[chosen]}.\n${table}`,
  ]);
  return { user, assistant: values[chosen] ?? "" };
}

/** Remembers what has just been said about a made-up thing. */
export function useDefinition(dice: Dice): Exchange {
  const [word = "", meaning = "", other = ""] = drawWords(dice, 3);
  return dice.pick([
    { user: `"${word}" means ${meaning}. What does "${word}" mean?`, assistant: meaning },
    { user: `We say ${word} for ${meaning}. How do we say ${meaning}?`, assistant: word },
    {
      user: `I say ${word}, you say ${meaning}. ${capitalized(word)}!`,
      assistant: capitalized(meaning),
    },
    { user: `The password is ${word}, not ${other}. What is the password?`, assistant: word },
  ]);
}
