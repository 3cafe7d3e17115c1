import type { Dice } from "../dice.js";
import { animals } from "../lexicon/animals.js";
import { countedFood } from "../lexicon/food.js";
import { jobs } from "../lexicon/people.js";
import { clothes, colours, things, treasures } from "../lexicon/things.js";
import { days, months, seasons } from "../lexicon/time.js";
import { oddPlurals, opposites, verbs } from "../lexicon/words.js";
import { capitalized, withArticle, type Exchange } from "./skill.js";

/** Gives the opposite of a word. */
export function opposite(dice: Dice): Exchange {
  const pair = dice.pick(opposites);
  const [word, other] = dice.chance(0.5) ? pair : [pair[1], pair[0]];
  return dice.pick([
    { user: `What is the opposite of ${word}?`, assistant: `The opposite of ${word} is ${other}.` },
    { user: `Opposite of ${word}?`, assistant: other },
    { user: `Not ${word}, but ...?`, assistant: other },
  ]);
}

/** Tells what is known about an animal. */
export function aboutAnimal(dice: Dice): Exchange {
  const { text, plural: many = "", sound = "", ...known } = dice.pick(animals);
  const { young, home, food, legs, colour, trait } = known;
  const one = capitalized(withArticle(text));
  return dice.pick([
    { user: `What sound does ${withArticle(text)} make?`, assistant: `${capitalized(sound)}!` },
    { user: `Where does ${withArticle(text)} live?`, assistant: `${one} lives near its ${home}.` },
    { user: `What do ${many} eat?`, assistant: `${capitalized(many)} eat ${food}.` },
    {
      user: `How many legs does ${withArticle(text)} have?`,
      assistant: `${one} has ${legs} legs.`,
    },
    { user: `What is a young ${text} called?`, assistant: `A young ${text} is called a ${young}.` },
    { user: `What colour is ${withArticle(text)}?`, assistant: `${one} is often ${colour}.` },
    {
      user: `Tell me about ${many}.`,
      assistant:
        `${one} is ${trait} and often ${colour}. It has ${legs} legs, eats ${food} and ` +
        `says ${sound}. Its young is called a ${young}.`,
    },
  ]);
}

/** Tells what things are for. */
export function aboutThing(dice: Dice): Exchange {
  const { text, use = "" } = dice.pick(things);
  const one = withArticle(text);
  return dice.pick([
    { user: `What is ${one} for?`, assistant: `With ${one} you can ${use}.` },
    { user: `I want to ${use}. What do I need?`, assistant: `You need ${one}.` },
  ]);
}

/** Tells what people work. */
export function aboutJob(dice: Dice): Exchange {
  const { text, does = "", where = "" } = dice.pick(jobs);
  return dice.pick([
    { user: `What does a ${text} do?`, assistant: `A ${text} ${does}.` },
    { user: `Where does a ${text} work?`, assistant: `A ${text} works ${where}.` },
  ]);
}

/** Tells what has a colour. */
export function aboutColour(dice: Dice): Exchange {
  const { text, like = "" } = dice.pick(colours);
  return dice.pick([
    { user: `Name something ${text}.`, assistant: `${capitalized(like)} is ${text}.` },
    { user: `What is ${text} like?`, assistant: `${capitalized(text)} like ${like}.` },
  ]);
}

const counted = [animals, countedFood, things, treasures, clothes, oddPlurals].flat();

/** Gives the plural of a noun, or the other way round. */
export function plural(dice: Dice): Exchange {
  const { text, plural: many = "" } = dice.pick(counted);
  return dice.pick([
    { user: `What is the plural of ${text}?`, assistant: many },
    { user: `One ${text}, two ...?`, assistant: many },
    { user: `Two ${many}, one ...?`, assistant: text },
  ]);
}

/** Gives the past of a verb, or the other way round. */
export function pastTense(dice: Dice): Exchange {
  const { text, past = "" } = dice.pick(verbs);
  return dice.pick([
    { user: `What is the past of ${text}?`, assistant: past },
    { user: `Today I ${text}. Yesterday I ...?`, assistant: past },
    { user: `Yesterday I ${past}. Today I ...?`, assistant: text },
  ]);
}

/** Says what comes before or after in the calendar. */
export function calendar(dice: Dice): Exchange {
  const [one, cycle] = dice.pick([
    ["day", days],
    ["month", months],
    ["season", seasons],
  ] as const);
  const place = dice.below(cycle.length);
  const word = cycle[place] ?? "";
  const next = cycle[(place + 1) % cycle.length] ?? "";
  return dice.pick([
    { user: `Which ${one} comes after ${word}?`, assistant: `After ${word} comes ${next}.` },
    { user: `Which ${one} comes before ${next}?`, assistant: `Before ${next} comes ${word}.` },
    { user: `What comes after ${word}?`, assistant: `After ${word} comes ${next}.` },
  ]);
}
