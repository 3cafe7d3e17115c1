import { trainFromPreferences } from "../preference/index.js";
import { percent } from "./exam.js";
import type { Recipe } from "./recipe.js";
import { drawPairs, shareOf, weatherPrompts, weatherTokens } from "./weather-talk.js";

const comparisonsPerPrompt = 400;
const judgeSteps = 46;
const rlSteps = 15;

/** Weather in which one can fly a kite. */
const isGood = (answer: string): boolean => /\b(sunny|windy)\b/.test(answer);

/** A judge learns from comparisons, and the model from the judge. */
export const recipe: Recipe = {
  name: "judge",
  summary: "A reward model learns from comparisons; the model learns to please it",
  teaches: [
    "A person likes weather for kites, and shows it by comparing answers. A copy of the model learns to",
    "compare as they do. Then the model's answers compete against each other, the copy says who wins, and",
    "what wins becomes more probable. No rule for good answers is ever written down.",
  ].join(" "),
  async run(context) {
    const { service, model, folder, renderer, seed, maxSteps, say, show, signal } = context;
    const before = await shareOf(context, isGood);
    say(`Before: ${percent(before)} of answers are liked.`);
    const size = { answers: 240, pairs: comparisonsPerPrompt };
    const data = await drawPairs(context, isGood, size);
    const [judged, played] = [judgeSteps, rlSteps].map((steps) =>
      Math.min(steps, maxSteps ?? steps),
    );
    const { status, stages, checkpoint } = await trainFromPreferences({
      service,
      model,
      folder,
      renderer,
      rewardModel: {
        data,
        testSize: Math.min(40, Math.floor(data.length / 4)),
        batchSize: 16,
        learningRate: 3e-3,
        loraRank: 32,
        maxSteps: judged,
        evalEvery: 12,
        saveEvery: 0,
        seed,
      },
      rl: {
        prompts: weatherPrompts.flatMap((prompt) => Array<string>(4).fill(prompt)),
        groupsPerBatch: 8,
        numEpochs: played,
        maxTokens: weatherTokens,
        learningRate: 2e-3,
        loraRank: 16,
        saveEvery: 0,
        seed,
      },
      sinks: (stage) => show(stage === "rl" ? played! : judged!),
      signal,
    });
    signal?.throwIfAborted();
    if (status !== "completed") throw new Error("The pipeline did not come to its end.");
    const judge = stages.reward_model as { evaluation?: Record<string, number> };
    const { samplerPath } = checkpoint!;
    const after = await shareOf(context, isGood, { samplerPath });
    return {
      samplerPath,
      checks: [
        {
          what: "judge is right",
          value: judge.evaluation?.["test/accuracy"] ?? Number.NaN,
          atLeast: 0.9,
        },
        { what: "liked before", value: before },
        { what: "liked after", value: after, atLeast: 0.9 },
      ],
    };
  },
};
