import type { Dice } from "../dice.js";
import { Scene } from "../scene.js";
import { drawNoise, drawWords } from "./draw-words.js";
import { capitalized, listed, type Exchange } from "./skill.js";

/** Says words again, as they are. */
export function repeatWords(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(1, 6));
  const text = dice.chance(0.5) ? words.join(" ") : listed(words);
  return { user: `${dice.pick(repeatPhrases)} ${text}`, assistant: text };
}

const repeatPhrases = ["Repeat:", "Repeat after me:", "Say this:", "Please repeat:", "Copy this:"];

/** Says a sentence again. */
export function repeatSentence(dice: Dice): Exchange {
  const text = new Scene(dice).say(dice.pick(sentences));
  return { user: `${dice.pick(repeatPhrases)} ${text}`, assistant: text };
}

const sentences = [
  "The {quality} {animal} sleeps {spot}.",
  "{hero} has {few} {colour} {treasure.plural}.",
  "{hero} and {friend} go to the {place}.",
  "On {day} it was {weather}.",
  "My {relative} likes {food.plural} and {drink}.",
  "There is a {colour} {thing} {spot}.",
  "A {animal} and a {animal2} sit {spot}.",
];

/** Copies characters without meaning. */
export function repeatNoise(dice: Dice): Exchange {
  const count = dice.between(1, 3);
  const text = Array.from({ length: count }, () => drawNoise(dice)).join(" ");
  return { user: `${dice.pick(repeatPhrases)} ${text}`, assistant: text };
}

/** Says a word several times. */
export function repeatTimes(dice: Dice): Exchange {
  const [word = ""] = drawWords(dice, 1);
  const [phrase, times] = dice.pick([
    [`Say "${word}" twice.`, 2],
    [`Say ${word} two times.`, 2],
    [`Say "${word}" three times.`, 3],
    [`Say ${word} four times.`, 4],
  ] as const);
  return { user: phrase, assistant: Array.from({ length: times }, () => word).join(" ") };
}

/** Writes words with a capital, or without. */
export function changeCapitals(dice: Dice): Exchange {
  const words = drawWords(dice, dice.between(1, 3));
  const text = words.join(" ");
  return dice.pick([
    { user: `Write with capitals: ${text}`, assistant: words.map(capitalized).join(" ") },
    {
      user: `Write without capitals: ${words.map(capitalized).join(" ")}`,
      assistant: text.toLowerCase(),
    },
  ]);
}

/** Greets somebody by name, or says something to them. */
export function tellSomebody(dice: Dice): Exchange {
  const scene = new Scene(dice);
  const user = scene.say(
    "[Please say|Say] [hello|good morning|good night|thank you|goodbye] to {hero}.",
  );
  const greeting = /say (.*) to/i.exec(user)?.[1] ?? "";
  return { user, assistant: `${capitalized(greeting)}, ${scene.entry("hero").text}!` };
}
