import type { Dice } from "../dice.js";
import { countedFood, measuredFood } from "../lexicon/food.js";
import { texts } from "../lexicon/entry.js";
import { people } from "../lexicon/people.js";
import { numberWords } from "../lexicon/time.js";
import { capitalized, spoken, withArticle, type Exchange } from "./skill.js";

/** Takes an order in a small cafe. */
export function takeOrder(dice: Dice): Exchange {
  const count = dice.between(1, 3);
  const goods = [
    ...countedFood.map(({ text, plural = "" }) => ({ text, plural })),
    ...measuredFood.map(({ text, measure, measures }) => ({
      text: `${measure} of ${text}`,
      plural: `${measures} of ${text}`,
    })),
  ];
  const items = dice.sample(goods, count).map(({ text, plural }) => {
    const number = dice.between(1, 5);
    return number === 1 ? withArticle(text) : `${numberWords[number]} ${plural}`;
  });
  const order = spoken(items);
  const name = dice.pick(texts(people));
  const user = dice.pick([
    `${capitalized(order)} for ${name}, please.`,
    `Hello! I would like ${order}. My name is ${name}.`,
    `Can I have ${order}, please? It is for ${name}.`,
    `${name} wants ${order}.`,
  ]);
  const assistant = dice.pick([
    `Of course! Here is ${order} for ${name}.`,
    `With pleasure. ${capitalized(order)} for ${name}.`,
    `Here you are, ${name}: ${order}.`,
    `Thank you! ${name} will get ${order} at once.`,
  ]);
  return { user, assistant };
}
