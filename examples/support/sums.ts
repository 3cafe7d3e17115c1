import { pick, seededRandom } from "./random.js";

/** A question whose answer a program can check. */
export interface Riddle {
  readonly question: string;
  /** 1 for a right answer, 0 for any other. */
  readonly reward: (answer: string) => number;
}

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
