import { textOf } from "../renderers/index.js";
import { mixSeeds, problemGroup, type EnvironmentGroup } from "../rl/index.js";
import { examine, examSize, openSampler } from "./exam.js";
import type { RecipeContext } from "./recipe.js";

/** Two prompts for the same; the model describes eight kinds of weather, and gives advice in two of three answers. */
export const weatherPrompts = ["Tell me something about the weather.", "Describe the weather."];

/** Most tokens that are needed to answer. */
export const weatherTokens = 48;

/** Answers of the model as it is to a prompt; fewer where a recipe is only to be seen at work. */
export async function drawAnswers(
  context: RecipeContext,
  prompt: string,
  count: number,
): Promise<string[]> {
  const { renderer, seed, maxSteps, signal } = context;
  const sampling = await openSampler(context);
  const { sequences } = await sampling.sample({
    prompt: renderer.buildGenerationPrompt([{ role: "user", content: prompt }]),
    numSamples: maxSteps === undefined ? count : Math.min(count, 32),
    samplingParams: {
      maxTokens: weatherTokens,
      stop: renderer.stopSequences,
      seed: mixSeeds(seed, prompt.length),
    },
    signal,
  });
  return sequences.map(({ tokens }) => textOf(renderer.parseResponse(tokens).message));
}

/** Pairs of answers to both prompts, the better one chosen. */
export async function drawPairs(
  context: RecipeContext,
  isBetter: (answer: string) => boolean,
  size: { readonly answers: number; readonly pairs: number },
): Promise<{ prompt: string; chosen: string; rejected: string }[]> {
  const drawn = weatherPrompts.map(async (prompt) => {
    const answers = await drawAnswers(context, prompt, size.answers);
    const good = answers.filter(isBetter);
    const bad = answers.filter((answer) => !isBetter(answer));
    return Array.from({ length: size.pairs }, (_, index) => ({
      prompt,
      chosen: good[index % good.length]!,
      // Numbers without a common divisor pair each with many.
      rejected: bad[(7 * index) % bad.length]!,
    })).filter(({ chosen, rejected }) => chosen !== undefined && rejected !== undefined);
  });
  return (await Promise.all(drawn)).flat();
}

/** How many answers are good. */
export async function shareOf(
  context: RecipeContext,
  isGood: (answer: string) => boolean,
  how: {
    /** @default 1 */
    readonly temperature?: number | undefined;
    /** Weights to ask. @default the model as it is */
    readonly samplerPath?: string | undefined;
  } = {},
): Promise<number> {
  const { renderer, seed, signal } = context;
  const size = examSize(context, 100);
  const groups = weatherPrompts.map((prompt): EnvironmentGroup =>
    problemGroup({ prompt, grade: (answer) => isGood(answer.trim()) }, { renderer, size }),
  );
  const sampling = await openSampler(context, how.samplerPath);
  const exam = await examine(sampling, groups, {
    maxTokens: weatherTokens,
    temperature: how.temperature,
    seed: seed + 1,
    signal,
  });
  return exam.rate("correct");
}
