import type { Dice } from "../dice.js";
import { Scene } from "../scene.js";
import type { Exchange } from "./skill.js";

/** Makes a sentence with given words. */
export function makeSentence(dice: Dice): Exchange {
  const scene = new Scene(dice);
  const [words, sentence] = dice.pick([
    ["{animal} and {place}", "[The|A {quality}] {animal} [walks|runs] to the {place}."],
    ["{hero} and {thing}", "{hero} [has|finds|takes] a {colour} {thing}."],
    ["{hero} and {food}", "{hero} [eats|buys|likes] the {food}."],
    ["{animal} and {animal2}", "[The|A] {animal} [meets|sees|likes] a {quality} {animal2}."],
    ["{colour} and {clothing}", "My {relative} [wears|likes] a {colour} {clothing}."],
    ["{hero} and {friend}", "{hero} and {friend} [play|walk|sing] together."],
  ] as const);
  const user = scene.say(`[Make|Write] a sentence with ${words}.`);
  return { user, assistant: scene.say(sentence) };
}

/** Describes something. */
export function describe(dice: Dice): Exchange {
  const scene = new Scene(dice);
  const [what, text] = dice.pick([
    [
      "a {animal}",
      "The {animal} is [big|small|{quality}] and {colour}. It [lives|sleeps] near its {animal.home}. [In the {dayTime} it looks for {animal.food}.|It likes {animal.food}.] [It is a {animal.trait} animal.|]",
    ],
    [
      "the kitchen",
      "In the kitchen there is a {colour} table with {few} chairs. The {thing} is {spot}. It smells of {food.plural} and {drink}.",
    ],
    [
      "the garden",
      "The garden is [small|wide] and green. There are {plant.plural} near the gate and a tree full of {fruit.plural}. [A {animal} sits in the grass.|In the {season} it is full of {plant2.plural}.]",
    ],
    [
      "the weather",
      "It is {weather} today. It is {weather.feel} outside. [Take your {colour} {clothing}.|{hero} stays at home.]",
    ],
    [
      "{hero}",
      "{hero} [wears|has] a {colour} {clothing} and lives near the {place}. {Hero.he} likes {food.plural} and [works as a {job}|has a {animal}|plays the flute].",
    ],
  ] as const);
  const user = scene.say(`[Describe|Tell me something about] ${what}.`);
  return { user, assistant: scene.say(text) };
}

/** Goes on with a sentence. */
export function continueSentence(dice: Dice): Exchange {
  const scene = new Scene(dice);
  const [start, rest] = dice.pick([
    [
      "{hero} went to the {place} because",
      "{hero.he} wanted to [see {friend}|buy {food.plural}|find a {treasure}].",
    ],
    ["The {animal} was hungry, so", "it [ate some {animal.food}|looked for {animal.food}]."],
    ["When it is {weather},", "it is {weather.feel} outside."],
    ["{hero} opened the box and", "found a {colour} {treasure}."],
    ["On {day} {hero} and {friend}", "[went|walked] to the {place}."],
  ] as const);
  const user = scene
    .say(`[Go on|Finish this]: ${start} ...`)
    .replace(
      /^(\w+ ?\w*): (.)/,
      (_, phrase: string, first: string) => `${phrase}: ${first.toUpperCase()}`,
    );
  return { user, assistant: scene.phrase(rest) };
}
