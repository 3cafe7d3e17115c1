import path from "node:path";
import { seededRandom } from "../data/index.js";
import type { Message } from "../renderers/index.js";
import {
  groupOf,
  guessNumber,
  messageEnvironment,
  train,
  type EnvironmentGroup,
} from "../rl/index.js";
import { examine, examSize, openSampler, percent } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";
import { warmUp } from "./warm-up.js";

const steps = 15;
const largest = 3;
const maxGuesses = 2;
const loraRank = 16;
const maxTokens = 4;

/** Two guesses are enough for three numbers, if the first is in the middle and the second listens. */
export const recipe: Recipe = {
  name: "guess-number",
  summary: "Finds a number in several turns, by what it is told about its guesses",
  teaches:
    "An episode of several turns: a guess is worth nothing in itself, and what made it good shows only at the end. " +
    "The form of the game is shown first by examples that guess at random; to begin in the middle and to listen is found by rewards alone.",
  async run(context) {
    const { service, model, folder, seed, maxSteps, say, show, signal } = context;
    const learned = await warmUp(context, {
      conversations: randomGames(seed, 512),
      steps: 40,
      batchSize: 16,
      loraRank,
    });
    const exam = (): EnvironmentGroup[] =>
      numbers(context, Math.ceil(examSize(context, 64) / largest), 4);
    const started = await openSampler(context, learned.samplerPath);
    const before = await examine(started, exam(), { maxTokens, seed, signal });
    say(`Guessing at random finds ${percent(before.rate("found"))}.`);
    const length = Math.min(steps, maxSteps ?? steps);
    const result = await train({
      service,
      model,
      folder: path.join(folder, "rewards"),
      recipeName: "guess-number",
      loadCheckpointPath: learned.statePath,
      dataset: { length, batch: () => numbers(context, 2, 12) },
      maxTokens,
      learningRate: 3e-3,
      loraRank,
      seed,
      sinks: show(length),
      signal,
    });
    signal?.throwIfAborted();
    const { samplerPath } = result.checkpoint!;
    const trained = await openSampler(context, samplerPath);
    const after = await examine(trained, exam(), { maxTokens, seed, signal });
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

/** Every number so many times, each with tries that are compared with each other. */
function numbers({ renderer }: RecipeContext, times: number, size: number): EnvironmentGroup[] {
  return Array.from({ length: times * largest }, (_, index) =>
    groupOf({
      size,
      sharesPrompt: true,
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

/** Games of somebody who does not listen. */
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
