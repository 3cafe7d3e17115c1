import type { Riddle } from "../../../examples/support/kite-weather.js";
import { seededRandom } from "../../../examples/support/random.js";

const largest = 20;

/** Sums that the model can do and mostly does carelessly; only a right answer is good. */
export function carefulSums(seed: number): { readonly draw: (count: number) => Riddle[] } {
  const random = seededRandom(seed);
  const number = (): number => 1 + Math.floor(random() * largest);
  return {
    draw: (count) =>
      Array.from({ length: count }, () => {
        const [a, b] = [number(), number()];
        const right = `${a} + ${b} = ${a + b}`;
        return {
          question: `What is ${a} + ${b}?`,
          reward: (answer) => (answer.trim() === right ? 1 : 0),
        };
      }),
  };
}
