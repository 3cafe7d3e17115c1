import path from "node:path";
import type { Message } from "../renderers/index.js";
import { train, type EnvironmentGroup, type RlTrainOptions } from "../rl/index.js";
import { examine, openSampler, type Exam } from "./exam.js";
import type { RecipeContext } from "./recipe.js";
import { warmUp } from "./warm-up.js";

/** Something that is learned by rewards, and examined before and after. */
export interface RewardTask extends Pick<
  RlTrainOptions,
  "advantages" | "loss" | "removeConstantRewardGroups"
> {
  /** The recipe's name. */
  readonly name: string;
  /** Shows the form of the task first, where the model cannot know it. */
  readonly examples?:
    | {
        readonly conversations: readonly { readonly messages: readonly Message[] }[];
        readonly steps: number;
      }
    | undefined;
  /** Steps by rewards. */
  readonly steps: number;
  /** What is played in a step. */
  readonly batch: (step: number) => readonly EnvironmentGroup[];
  /** What is played to examine the model; the same before and after. */
  readonly exam: () => readonly EnvironmentGroup[];
  /** Most tokens of a turn. */
  readonly maxTokens: number;
  /** The rate by rewards. */
  readonly learningRate: number;
  /** Called with the exam before training by rewards. */
  readonly onBefore: (before: Exam) => void;
}

const loraRank = 16;
const examplesPerStep = 16;

/** Shows examples where there are some, examines, learns by rewards, and examines again. */
export async function learnByRewards(
  context: RecipeContext,
  task: RewardTask,
): Promise<{ readonly before: Exam; readonly after: Exam; readonly samplerPath: string }> {
  const { service, model, folder, seed, maxSteps, show, signal } = context;
  const { name, examples, batch, exam, maxTokens, learningRate } = task;
  const examWith = async (samplerPath?: string): Promise<Exam> =>
    examine(await openSampler(context, samplerPath), exam(), { maxTokens, seed, signal });
  const shown =
    examples && (await warmUp(context, { ...examples, batchSize: examplesPerStep, loraRank }));
  const before = await examWith(shown?.samplerPath);
  task.onBefore(before);
  const length = Math.min(task.steps, maxSteps ?? task.steps);
  const result = await train({
    service,
    model,
    folder: path.join(folder, "rewards"),
    recipeName: name,
    loadCheckpointPath: shown?.statePath,
    dataset: { length, batch },
    maxTokens,
    learningRate,
    loraRank,
    advantages: task.advantages,
    loss: task.loss,
    removeConstantRewardGroups: task.removeConstantRewardGroups,
    seed,
    sinks: show(length),
    signal,
  });
  signal?.throwIfAborted();
  const samplerPath = result.checkpoint!.samplerPath!;
  return { before, after: await examWith(samplerPath), samplerPath };
}
