import type { TrainingClient } from "tinker-ts";
import type { CheckpointRow, RunLog } from "tinker-ts/run-log";
import {
  CheckpointKeeper,
  findContextLength,
  openTraining,
  withRunLog,
  type RunResult,
} from "../runs/index.js";
import { trainAsynchronously } from "./asynchronous.js";
import { RlRun } from "./rl-run.js";
import { trainBatches, type Progress } from "./synchronous.js";
import {
  completeRlOptions,
  toRlConfig,
  type CompleteRlOptions,
  type RlTrainOptions,
} from "./train-options.js";

/**
 * Trains a model by rewards: plays groups of episodes, compares them with each other, and makes what went
 * well more probable.
 *
 * A folder that holds a run is gone on with. Batch by batch the result is the same as if it had never stopped;
 * asynchronously every group is still trained once.
 */
export async function train(options: RlTrainOptions): Promise<RunResult> {
  const complete = completeRlOptions(options);
  const fixed = ["model_name", "lora_rank", "mode"];
  return withRunLog(complete, toRlConfig(complete), fixed, async (log, signal) => {
    const contextWindow = complete.contextWindow ?? (await findContextLength(complete));
    return trainRun({ ...complete, contextWindow, signal }, log);
  });
}

async function trainRun(options: CompleteRlOptions, log: RunLog): Promise<RunResult> {
  const { service, mode, signal } = options;
  const { training, row } = await openTraining({
    ...options,
    run: log,
    rank: options.loraRank,
    userMetadata: { recipe_name: options.recipeName },
  });
  const start: Progress = {
    step: row?.batch ?? 0,
    tokens: Number(row?.extra?.["elapsed_tokens"] ?? 0),
    extra: row?.extra ?? {},
  };
  const totalSteps = await countSteps(options);
  const keeper = new CheckpointKeeper({
    training,
    rest: service.createRestClient(),
    run: log,
    options,
    resumedFrom: row && { row, step: start.step },
  });
  const decode = await decoderOf(training);
  const run = new RlRun({ options, training, log, keeper, totalSteps, decode });
  const end = (
    status: RunResult["status"],
    step: number,
    checkpoint: CheckpointRow | undefined,
  ) => {
    return { status, step, totalSteps, checkpoint, folder: log.folder };
  };
  options.onProgress?.({ step: start.step, totalSteps, metrics: {} });
  if (row?.final === true && start.step >= totalSteps) {
    await keeper.removeRolling();
    return end("unchanged", start.step, row);
  }

  const { step, tokens, extra } =
    mode.kind === "asynchronous"
      ? await trainAsynchronously(run, mode, start)
      : await trainBatches(run, start);
  const position = { step, batch: step };
  if (signal?.aborted) {
    const saved = step === 0 ? undefined : await keeper.saveNow(position, tokens, extra);
    return end("interrupted", step, saved);
  }
  return end("completed", step, await keeper.finish(position, tokens, extra));
}

/** Updates that the data suffice for; the most there can be where groups are left out on the way. */
async function countSteps({ dataset, mode, maxSteps }: CompleteRlOptions): Promise<number> {
  const most = maxSteps ?? Number.POSITIVE_INFINITY;
  if (mode.kind !== "asynchronous") return Math.min(dataset.length, most);
  let groups = 0;
  for (let index = 0; index < dataset.length; index++)
    groups += (await dataset.batch(index)).length;
  return Math.min(Math.ceil(groups / mode.groupsPerBatch), most);
}

/** Transcripts have a text where the model's tokenizer can be had. */
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
