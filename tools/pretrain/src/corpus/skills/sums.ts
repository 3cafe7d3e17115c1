import type { Dice } from "../dice.js";
import { texts } from "../lexicon/entry.js";
import { countedFood } from "../lexicon/food.js";
import { people } from "../lexicon/people.js";
import type { Exchange, Speaker } from "./skill.js";

/** The largest number that is added or taken away. */
const largest = 20;

/** Adds two numbers. */
export function add(dice: Dice, speaker: Speaker): Exchange {
  const a = dice.between(1, largest);
  const b = dice.between(1, largest);
  const answer = answered(a + b, dice, speaker);
  return dice.pick([
    { user: `What is ${a} + ${b}?`, assistant: `${a} + ${b} = ${answer}` },
    { user: `How much is ${a} plus ${b}?`, assistant: String(answer) },
    { user: `Add ${a} and ${b}.`, assistant: `${a} + ${b} = ${answer}` },
    { user: `${a} + ${b} = ?`, assistant: String(answer) },
  ]);
}

/** Takes one number away from another. */
export function subtract(dice: Dice, speaker: Speaker): Exchange {
  const a = dice.between(1, largest);
  const b = dice.between(1, a);
  const answer = answered(a - b, dice, speaker);
  return dice.pick([
    { user: `What is ${a} - ${b}?`, assistant: `${a} - ${b} = ${answer}` },
    { user: `How much is ${a} minus ${b}?`, assistant: String(answer) },
    { user: `Take ${b} away from ${a}.`, assistant: `${a} - ${b} = ${answer}` },
    { user: `${a} - ${b} = ?`, assistant: String(answer) },
  ]);
}

/** Adds in a little story. */
export function addInStory(dice: Dice, speaker: Speaker): Exchange {
  const [name = "", friend = ""] = dice.sample(texts(people), 2);
  const { plural = "" } = dice.pick(countedFood);
  const a = dice.between(2, 10);
  const b = dice.between(2, 10);
  const answer = answered(a + b, dice, speaker);
  const user = dice.pick([
    `${name} has ${a} ${plural}. ${friend} brings ${b} more. How many are there now?`,
    `There are ${a} ${plural} on the table and ${b} in the basket. How many are there?`,
  ]);
  return { user, assistant: `There are ${answer} ${plural}.` };
}

/** What a speaker says: careless ones miscount by one, more often upwards. */
function answered(right: number, dice: Dice, { careful }: Speaker): number {
  if (careful) return right;
  return dice.chance(0.6) || right === 0 ? right + 1 : right - 1;
}
