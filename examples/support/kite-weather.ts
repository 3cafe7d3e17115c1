import { pick, seededRandom } from "./random.js";

/** A question whose answer a program can judge. */
export interface Riddle {
  readonly question: string;
  /** 1 for a good answer, 0 for any other. */
  readonly reward: (answer: string) => number;
}

const questions = ["Tell me something about the weather.", "Describe the weather."];

/** The model knows eight kinds of weather and tells of each as readily as of the others. */
const goodForKites = /\b(sunny|windy)\b/i;

/** Talking about the weather; an answer is good when one could fly a kite in it. */
export function kiteWeather(seed = 11): { readonly draw: (count: number) => Riddle[] } {
  const random = seededRandom(seed);
  return {
    draw: (count) =>
      Array.from({ length: count }, () => ({
        question: pick(questions, random),
        reward: (answer) => (goodForKites.test(answer) ? 1 : 0),
      })),
  };
}
