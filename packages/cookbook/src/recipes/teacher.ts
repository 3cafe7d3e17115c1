import path from "node:path";
import { trainOnPolicy } from "../distillation/index.js";
import { readRunFolder } from "tinker-ts/run-log";
import { train } from "../supervised/index.js";
import { openSampler } from "./exam.js";
import type { Recipe } from "./recipe.js";
import { drawAnswers, weatherPrompts, weatherTokens } from "./weather-talk.js";

const lessons = 24;
const steps = 24;
/** Steps at either end for the compared means. */
const ends = 3;

/** A student answers, and a teacher says of every token what it thinks of it. */
export const recipe: Recipe = {
  name: "teacher",
  summary: "A student comes near to a teacher, token by token of its own answers",
  teaches: [
    "The teacher is the same model after a few lessons; it speaks of the weather in its own manner. The student",
    "never sees an answer of it. It answers itself, and every token is worth as much as it was more",
    "probable to the teacher: the reverse KL divergence goes down where the student really goes.",
  ].join(" "),
  async run(context) {
    const { service, model, folder, renderer, seed, maxSteps, say, show, signal } = context;
    const drawn = await Promise.all(
      weatherPrompts.map(async (prompt) => ({
        prompt,
        answers: await drawAnswers(context, prompt, 160),
      })),
    );
    const taught = drawn.flatMap(({ prompt, answers }) =>
      answers
        .filter((answer) => /\b(foggy|snowy)\b/.test(answer))
        .map((answer) => ({ prompt, completion: answer })),
    );
    say(`The teacher learns from ${taught.length} answers.`);
    const common = { service, model, renderer, seed, saveEvery: 0, loraRank: 16, signal };
    const teaching = await train({
      ...common,
      folder: path.join(folder, "teacher"),
      recipeName: "teacher",
      data: taught,
      batchSize: Math.min(8, taught.length),
      numEpochs: 8,
      maxSteps: Math.min(lessons, maxSteps ?? lessons),
      learningRate: 2e-3,
      evalEvery: 0,
    });
    signal?.throwIfAborted();
    const teacher = await openSampler(context, teaching.checkpoint!.samplerPath);
    const length = Math.min(steps, maxSteps ?? steps);
    const result = await trainOnPolicy({
      ...common,
      folder: path.join(folder, "student"),
      recipeName: "teacher",
      datasets: [{ prompts: weatherPrompts, teacher, groupsPerBatch: 2 }],
      groupSize: 16,
      numEpochs: length,
      maxTokens: weatherTokens,
      learningRate: 2e-3,
      sinks: show(length),
    });
    signal?.throwIfAborted();
    const { metrics } = await readRunFolder(result.folder);
    const distances = metrics.map((step) => Number(step.metrics["teacher_kl"]));
    const [first, last] = [distances.slice(0, ends), distances.slice(-ends)].map(mean);
    return {
      samplerPath: result.checkpoint!.samplerPath,
      checks: [
        { what: "KL per token at first", value: first!, unit: "number" },
        { what: "KL per token at last", value: last!, unit: "number" },
        { what: "KL that is gone", value: 1 - last! / first!, atLeast: 0.8 },
      ],
    };
  },
};

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
