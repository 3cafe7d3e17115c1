import path from "node:path";
import { distillPrompt } from "../distillation/index.js";
import { textOf, type Message } from "../renderers/index.js";
import { problemGroup } from "../rl/index.js";
import { examine, examSize, openSampler, percent } from "./exam.js";
import type { Recipe, RecipeContext } from "./recipe.js";

const instruction = "The password is kite, not drum.";
const queries = [
  "What is the password?",
  "Tell me the password.",
  "Password?",
  "Say the password.",
  "Do you know the password?",
];
/** Ways to ask that are not in the lessons. */
const newQueries = ["What is the password today?", "What was the password?"];
const samplesPerQuery = 8;
const epochs = 10;

/** An instruction becomes part of the model. */
export const recipe: Recipe = {
  name: "instruction",
  summary: "An instruction is followed without being seen (prompt distillation)",
  teaches: [
    "With the instruction in front of a question the model knows the password. It answers some questions that",
    "way, and then learns its own answers to the bare questions. Afterwards it needs no instruction, also",
    "when it is asked in words that were not in the lessons.",
  ].join(" "),
  async run(context) {
    const { service, model, folder, seed, maxSteps, say, show, signal } = context;
    const [withIt, withoutIt] = await Promise.all([
      follows(context, undefined, true),
      follows(context),
    ]);
    say(
      `With the instruction ${percent(withIt)} of answers are right, without it ${percent(withoutIt)}.`,
    );
    const batchSize = 8;
    const steps = epochs * Math.floor((queries.length * samplesPerQuery) / batchSize);
    const result = await distillPrompt({
      service,
      model,
      folder: path.join(folder, "student"),
      recipeName: "instruction",
      instruction: withInstruction,
      queries,
      samplesPerQuery,
      temperature: 0.5,
      maxTokens: 16,
      // The teacher's slips are not worth learning.
      keep: (answer) => (/^[\w ,.!]+$/.test(answer) ? answer : undefined),
      batchSize,
      numEpochs: epochs,
      maxSteps,
      learningRate: 2e-3,
      loraRank: 16,
      evalEvery: 0,
      saveEvery: 0,
      seed,
      sinks: show(Math.min(steps, maxSteps ?? steps)),
      signal,
    });
    signal?.throwIfAborted();
    const { samplerPath } = result.checkpoint!;
    const after = await follows(context, samplerPath);
    return {
      samplerPath,
      checks: [
        { what: "follows it when it reads it", value: withIt },
        { what: "follows it without reading it, before", value: withoutIt },
        { what: "follows it without reading it, after", value: after, atLeast: 0.9 },
      ],
    };
  },
};

/** The instruction stands in the question itself, where this model looks for it. */
function withInstruction(query: readonly Message[]): readonly Message[] {
  return [{ role: "user", content: `${instruction} ${textOf(query.at(-1)!)}` }];
}

/** How many answers at temperature 1 follow the instruction, with it in sight or not. */
async function follows(
  context: RecipeContext,
  samplerPath?: string,
  isTold = false,
): Promise<number> {
  const { renderer, seed, signal } = context;
  const size = examSize(context, 32);
  const groups = [...queries, ...newQueries].map((query) => {
    const asked = [{ role: "user", content: query }];
    return problemGroup(
      {
        prompt: isTold ? withInstruction(asked) : asked,
        grade: (answer) => /\bkite\b/i.test(answer),
      },
      { renderer, size },
    );
  });
  const sampling = await openSampler(context, samplerPath);
  const exam = await examine(sampling, groups, { maxTokens: 16, seed: seed + 1, signal });
  return exam.rate("correct");
}
