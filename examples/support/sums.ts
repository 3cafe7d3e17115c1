import { pick, seededRandom } from "./random.js";
import type { Riddle } from "./task.js";

export type { Riddle } from "./task.js";

const numbers = Array.from({ length: 20 }, (_, index) => index + 1);

/** Small sums; the last number of an answer is what counts. */
export function sums(seed = 11): { readonly draw: (count: number) => Riddle[] } {
  const random = seededRandom(seed);
  return {
    draw: (count) =>
      Array.from({ length: count }, () => {
        const a = pick(numbers, random);
        const b = pick(numbers, random);
        return {
          question: `What is ${a} + ${b}?`,
          reward: (answer) => (Number(/(\d+)\D*$/.exec(answer)?.[1]) === a + b ? 1 : 0),
        };
      }),
  };
}
