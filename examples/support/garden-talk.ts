import { pick, seededRandom } from "./random.js";
import type { Exchange, Task } from "./task.js";

/*
 * Garden Talk is a language that nobody speaks, so no model can know it. It goes word by word, with the
 * colour after the animal; a model has to learn the words and the order from examples alone.
 */
const colours = { red: "runo", green: "velu", black: "nato", white: "blino", brown: "tuma" };
const animals = { cat: "miu", dog: "wafo", bird: "pipi", frog: "kroa", fox: "rivu", bee: "zuzu" };
const verbs = { sees: "oka", likes: "lumi", finds: "tapo", hears: "sona" };
const things = { flower: "flo", leaf: "lapa", stone: "duru", tree: "arbo", pond: "wela" };

/** Translating short English sentences into Garden Talk. */
export function gardenTalk(seed = 7, examSize = 24): Task {
  const random = seededRandom(seed);
  const exam = new Map<string, Exchange>();
  while (exam.size < examSize) {
    const exchange = draw(random);
    exam.set(exchange.question, exchange);
  }
  return {
    title: "Garden Talk",
    description: "Translate English into a language that nobody speaks, so that no model knows it",
    exam: [...exam.values()],
    lesson: (count) => {
      const lesson: Exchange[] = [];
      while (lesson.length < count) {
        const exchange = draw(random);
        if (!exam.has(exchange.question)) lesson.push(exchange);
      }
      return lesson;
    },
  };
}

function draw(random: () => number): Exchange {
  const [colour, kolo] = pick(Object.entries(colours), random);
  const [animal, ani] = pick(Object.entries(animals), random);
  const [verb, vero] = pick(Object.entries(verbs), random);
  const [thing, tingo] = pick(Object.entries(things), random);
  return {
    question: `In Garden Talk: The ${colour} ${animal} ${verb} a ${thing}.`,
    answer: `${ani} ${kolo} ${vero} ${tingo}`,
  };
}
