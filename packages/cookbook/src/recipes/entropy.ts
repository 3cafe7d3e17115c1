import path from "node:path";
import { composeLoss, entropyEstimate, importanceSampling } from "../losses/index.js";
import { problemGroup, train, type EnvironmentGroup, type PolicyLoss } from "../rl/index.js";
import { textOf } from "../renderers/index.js";
import { examine, examSize, openSampler, percent, type Exam } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";

const steps = 20;
const maxTokens = 20;
const bonus = 0.02;

/** The same task twice, once with a term that keeps answers different from each other. */
export const recipe: Recipe = {
  name: "entropy",
  summary:
    "Keeps answers different from each other, where rewards alone would make them all the same",
  teaches:
    "A regularizer: rewards alone make one good answer ever more probable until it is the only answer. A term of the loss " +
    "that rewards uncertainty keeps many good answers. Both runs are the same but for that term.",
  async run(context) {
    const { say } = context;
    const plain = await runWith(context, "plain", { name: "importance_sampling" });
    say(`Rewards alone: ${describe(plain)}.`);
    const kept = await runWith(context, "regularized", {
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
              // Losses on sampled tokens are sums, so the term is one, too.
              term: entropyEstimate({ mode: "maximize", reduction: "sum" }),
              weight: bonus,
            },
          ],
          masks: data.map(({ mask }) => mask),
        }).at(step),
    });
    say(`With the term: ${describe(kept)}.`);
    return {
      samplerPath: kept.samplerPath,
      checks: [
        { what: "good, rewards alone", value: plain.good, atLeast: 0.8 },
        { what: "good, with the term", value: kept.good, atLeast: 0.8 },
        { what: "entropy, rewards alone", value: plain.entropy, atMost: 0.5, unit: "number" },
        {
          what: "entropy, with the term",
          value: kept.entropy,
          atLeast: 0.6,
          atMost: 2,
          unit: "number",
        },
        { what: "different answers, rewards alone", value: plain.different, unit: "number" },
        { what: "different answers, with the term", value: kept.different, unit: "number" },
      ],
    };
  },
};

interface Outcome {
  readonly good: number;
  /** Mean surprise of a sampled token. */
  readonly entropy: number;
  readonly different: number;
  readonly samplerPath: string;
}

async function runWith(context: RecipeContext, name: string, loss: PolicyLoss): Promise<Outcome> {
  const { service, model, folder, seed, maxSteps, show, signal } = context;
  const length = Math.min(steps, maxSteps ?? steps);
  const result = await train({
    service,
    model,
    folder: path.join(folder, name),
    recipeName: `entropy ${name}`,
    dataset: { length, batch: () => weather(context, 4, 16) },
    maxTokens,
    learningRate: 2e-3,
    loraRank: 16,
    loss,
    seed,
    sinks: show(length),
    signal,
  });
  signal?.throwIfAborted();
  const { samplerPath } = result.checkpoint!;
  const sampling = await openSampler(context, samplerPath);
  const exam = await examine(sampling, weather(context, examSize(context, 16), 8), {
    maxTokens,
    seed,
    signal,
  });
  return { good: exam.rate("correct"), samplerPath: samplerPath!, ...variety(context, exam) };
}

/** A good answer describes weather for flying a kite. */
function weather({ renderer }: RecipeContext, count: number, size: number): EnvironmentGroup[] {
  const prompts = ["Tell me something about the weather.", "Describe the weather."];
  return Array.from({ length: count }, (_, index) => ({
    ...problemGroup(
      { prompt: prompts[index % 2]!, grade: (answer) => /\b(sunny|windy)\b/i.test(answer) },
      { renderer, size },
    ),
    // One by one, as the bounds of this recipe were found.
    sharesPrompt: false,
  }));
}

function variety(
  { renderer }: RecipeContext,
  { played }: Exam,
): { readonly entropy: number; readonly different: number } {
  const actions = played.flatMap(({ trajectories }) =>
    trajectories.flatMap(({ transitions }) => transitions.map(({ action }) => action)),
  );
  const logprobs = actions.flatMap((action) => [...action.logprobs]);
  const answers = actions.map(({ tokens }) => textOf(renderer.parseResponse(tokens).message));
  return {
    entropy: -logprobs.reduce((sum, logprob) => sum + logprob, 0) / logprobs.length,
    different: new Set(answers).size,
  };
}

function describe({ good, entropy, different }: Outcome): string {
  return `${percent(good)} good, entropy ${entropy.toFixed(2)}, ${different} different answers`;
}
