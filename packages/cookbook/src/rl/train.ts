import type { TrainingClient } from "tinker-ts";
import {
  checkOptionNames,
  findContextLength,
  inRunFolder,
  learningRateWarning,
  withRun,
  type OpenRun,
  type RunResult,
} from "../runs/index.js";
import { trainAsynchronously } from "./asynchronous.js";
import { rlOptionNames } from "./option-names.js";
import { RlRun } from "./rl-run.js";
import { trainBatches, type Progress } from "./synchronous.js";
import {
  completeRlOptions,
  functionsOf,
  toRlConfig,
  type CompleteRlOptions,
  groupsOf,
  type RlTrainOptions,
} from "./train-options.js";

/**
 * Trains a model by rewards: plays groups of episodes, compares their rewards, and makes actions of better episodes more
 * probable.
 *
 * A folder that holds a run with the same settings is resumed. Batch by batch the result is the same as without the
 * interruption; asynchronously every group is still trained once.
 */
export async function train(options: RlTrainOptions): Promise<RunResult> {
  checkOptionNames(options, rlOptionNames);
  const complete = await inRunFolder(completeRlOptions(options));
  const totalSteps = await countSteps(complete);
  const plan = {
    config: toRlConfig(complete),
    totalSteps,
    notCompared: complete.notCompared ?? functionsOf(complete),
    warnings: [
      learningRateWarning(complete.model, complete.learningRate) ?? [],
      totalSteps === 1 ? "1 step: expect no change; pass a dataset with more batches" : [],
    ].flat(),
  };
  return withRun(complete, plan, async (run) => {
    const contextWindow = complete.contextWindow ?? (await findContextLength(complete));
    return trainRun({ ...complete, contextWindow, signal: run.signal }, run, totalSteps);
  });
}

async function trainRun(
  options: CompleteRlOptions,
  open: OpenRun,
  totalSteps: number,
): Promise<RunResult> {
  const { mode, signal } = options;
  const { training, row, keeper } = open;
  const start: Progress = {
    step: open.startStep,
    tokens: open.startTokens,
    extra: row?.extra ?? {},
  };
  if (row?.final === true && start.step >= totalSteps) return open.endUnchanged();
  const decode = await decoderOf(training);
  const run = new RlRun({ options, open, totalSteps, decode });
  const { step, tokens, extra } =
    mode.kind === "asynchronous"
      ? await trainAsynchronously(run, mode, start)
      : await trainBatches(run, start);
  const position = { step, batch: step };
  if (signal?.aborted) {
    const saved = step === 0 ? undefined : await keeper.saveNow(position, tokens, extra);
    return open.end("interrupted", step, saved);
  }
  run.check.finish();
  return open.end("completed", step, await keeper.finish(position, tokens, extra));
}

/** The number of updates; for asynchronous runs the maximum, since groups may be left out. */
async function countSteps({ dataset, mode, maxSteps }: CompleteRlOptions): Promise<number> {
  const most = maxSteps ?? Number.POSITIVE_INFINITY;
  if (mode.kind !== "asynchronous") return Math.min(dataset.length, most);
  let groups = 0;
  for (let index = 0; index < dataset.length; index++)
    groups += (await groupsOf(dataset, index)).length;
  return Math.min(Math.ceil(groups / mode.groupsPerBatch), most);
}

/** Decodes the texts of transcripts; undefined for a model without a tokenizer. */
async function decoderOf(
  training: TrainingClient,
): Promise<((tokens: Iterable<number>) => string) | undefined> {
  try {
    const tokenizer = await training.getTokenizer();
    return (tokens) => tokenizer.decode(tokens);
  } catch {
    return undefined;
  }
}
