import { seededRandom } from "../data/index.js";
import { composeLoss, entropyEstimate, importanceSampling, ramp } from "../losses/index.js";
import type { Message } from "../renderers/index.js";
import {
  groupOf,
  guessNumber,
  messageEnvironment,
  type EnvironmentGroup,
  type PolicyLoss,
} from "../rl/index.js";
import { learnByRewards } from "./by-rewards.js";
import { examSize, percent } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";

const largest = 3;
const maxGuesses = 2;

/** Two guesses are enough for three numbers, if the first is in the middle and the second listens. */
export const recipe: Recipe = {
  name: "guess-number",
  summary: "Finds a number in several turns, by the answers to its guesses",
  teaches:
    "An episode of several turns: a guess is worth nothing in itself, and what made it good shows only at the end. " +
    "The form of the game is shown first by examples that guess at random; to begin in the middle and to listen is found by rewards alone.",
  async run(context) {
    const { before, after, samplerPath } = await learnByRewards(context, {
      name: "guess-number",
      examples: { conversations: randomGames(context.seed, 512), steps: 40 },
      steps: 20,
      batch: () => numbers(context, 2, 12),
      exam: () => numbers(context, Math.ceil(examSize(context, 64) / largest), 4),
      maxTokens: 4,
      learningRate: 3e-3,
      loss: curious,
      onBefore: (exam) => context.say(`Guessing at random finds ${percent(exam.rate("found"))}.`),
    });
    const gain = after.rate("found") - before.rate("found");
    return {
      samplerPath,
      checks: [
        { what: "found by chance", value: before.rate("found") },
        { what: "found after", value: after.rate("found") },
        { what: "gained", value: gain, atLeast: 0.3 },
      ],
    };
  },
};

/**
 * Rewards, and less and less of a term that keeps guesses different from each other: without it the first number
 * that was lucky is soon always guessed first, and the middle is never tried again.
 */
const curious: PolicyLoss = {
  name: "custom",
  loss: (data, step) =>
    composeLoss({
      base: importanceSampling({
        logprobs: data.map(({ logprobs }) => logprobs),
        advantages: data.map(({ advantages }) => advantages),
      }),
      terms: [
        {
          name: "entropy",
          term: entropyEstimate({ mode: "maximize", reduction: "sum" }),
          weight: ramp({ from: 0.1, to: 0, steps: 12 }),
        },
      ],
      masks: data.map(({ mask }) => mask),
    }).at(step),
};

/** Every number so many times, each with tries that are compared with each other. */
function numbers({ renderer }: RecipeContext, times: number, size: number): EnvironmentGroup[] {
  return Array.from({ length: times * largest }, (_, index) =>
    groupOf({
      size,
      make: () =>
        messageEnvironment(
          guessNumber({ number: (index % largest) + 1, to: largest, maxGuesses }),
          {
            renderer,
          },
        ),
    }),
  );
}

/** Games of a player that ignores the answers. */
function randomGames(seed: number, count: number): { messages: Message[] }[] {
  const random = seededRandom(seed, 7);
  const draw = (): number => 1 + Math.floor(random() * largest);
  return Array.from({ length: count }, () => {
    const number = draw();
    const messages: Message[] = [
      { role: "user", content: `I think of a number from 1 to ${largest}. What is it?` },
    ];
    for (let turn = 0; turn < maxGuesses; turn++) {
      const guess = draw();
      messages.push({ role: "assistant", content: String(guess) });
      if (guess === number || turn === maxGuesses - 1) break;
      messages.push({ role: "user", content: `Too ${guess < number ? "low" : "high"}.` });
    }
    return { messages };
  });
}
