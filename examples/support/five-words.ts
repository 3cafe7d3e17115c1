import { pick, seededRandom } from "./random.js";
import type { Riddle } from "./task.js";

const animals = ["cat", "dog", "bird", "frog", "fox", "bee", "horse", "owl", "bear", "mouse"];

/** Saying something in exactly five words, whatever it is. */
export function fiveWords(seed = 11): { readonly draw: (count: number) => Riddle[] } {
  const random = seededRandom(seed);
  return {
    draw: (count) =>
      Array.from({ length: count }, () => ({
        question: `Tell me about the ${pick(animals, random)} in five words.`,
        reward: (answer) => (answer.split(/\s+/).length === 5 ? 1 : 0),
      })),
  };
}
