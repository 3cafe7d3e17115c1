import path from "node:path";
import { dpo, train } from "../preference/index.js";
import { percent } from "./exam.js";
import type { Recipe } from "./recipe.js";
import { drawPairs, shareOf } from "./weather-talk.js";

const pairsPerPrompt = 64;
const batchSize = 8;
const epochs = 3;
/** A little below 1, where so small a model garbles hardly any sentence. */
const temperature = 0.7;

/** True when the last sentence is a statement about a person, not an order. */
const isPreferred = (answer: string): boolean =>
  / stays [a-z ]+\.$/.test(answer) && !answer.includes("Take your");

/** A form of answers is preferred, and nothing is rewarded. */
export const recipe: Recipe = {
  name: "preference",
  summary: "A form of answers becomes the rule, by pairs of which one was preferred (DPO)",
  teaches: [
    "The model speaks of the weather in one of two forms. Pairs of its own answers say which is preferred;",
    "direct preference optimization makes the preferred one more probable than the other, compared with the",
    "model as it was. No judge, no rewards, nothing is sampled while it learns.",
  ].join(" "),
  async run(context) {
    const { service, model, folder, seed, maxSteps, say, show, signal } = context;
    const before = await shareOf(context, isPreferred, { temperature });
    say(`Before: ${percent(before)} of answers have the preferred form.`);
    const data = await drawPairs(context, isPreferred, { answers: 240, pairs: pairsPerPrompt });
    say(`${data.length} pairs of the model's own answers.`);
    const result = await train({
      service,
      model,
      folder: path.join(folder, "dpo"),
      recipeName: "preference",
      data,
      loss: dpo({ beta: 0.3 }),
      learningRate: 3e-4,
      loraRank: 16,
      batchSize,
      numEpochs: epochs,
      maxSteps,
      evalEvery: 0,
      saveEvery: 0,
      seed,
      sinks: show(Math.min(epochs * Math.floor(data.length / batchSize), maxSteps ?? Infinity)),
      signal,
    });
    signal?.throwIfAborted();
    const { samplerPath } = result.checkpoint!;
    const after = await shareOf(context, isPreferred, { temperature, samplerPath });
    return {
      samplerPath,
      checks: [
        { what: "preferred before", value: before },
        { what: "preferred after", value: after, atLeast: 0.95 },
      ],
    };
  },
};
