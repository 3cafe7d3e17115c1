import type { TrainingClient } from "tinker-ts";
import { RunLog, type CheckpointRow } from "tinker-ts/run-log";
import { checkSameRun, CheckpointKeeper, openTraining } from "../runs/index.js";
import { trainAsynchronously } from "./asynchronous.js";
import { RlRun } from "./rl-run.js";
import { trainBatches, type Progress } from "./synchronous.js";
import {
  completeRlOptions,
  toRlConfig,
  type CompleteRlOptions,
  type RlTrainOptions,
} from "./train-options.js";

/** How a run ended. */
export interface RlTrainResult {
  /** `unchanged`: there was nothing left to do. */
  readonly status: "completed" | "interrupted" | "unchanged";
  /** Steps done, those of earlier attempts included. */
  readonly step: number;
  /** Steps in all. */
  readonly totalSteps: number;
  /** The last checkpoint: the final one, or the one to go on from. */
  readonly checkpoint: CheckpointRow | undefined;
  /** The run's folder. */
  readonly folder: string;
}

/**
 * Trains a model by rewards: plays groups of episodes, compares them with each other, and makes what went
 * well more probable.
 *
 * A folder that holds a run is gone on with. Batch by batch the result is the same as if it had never stopped;
 * asynchronously every group is still trained once.
 */
export async function train(options: RlTrainOptions): Promise<RlTrainResult> {
  const complete = completeRlOptions(options);
  const { folder, ifExists, sinks } = complete;
  const log = await RunLog.open({ folder, ifExists, sinks, config: toRlConfig(complete) });
  try {
    checkSameRun(log, {
      model_name: complete.model,
      lora_rank: complete.loraRank,
      mode: complete.mode.kind,
    });
    return await trainRun(complete, log);
  } catch (error) {
    log.text(String(error), "error");
    throw error;
  } finally {
    await log.close();
  }
}

async function trainRun(options: CompleteRlOptions, log: RunLog): Promise<RlTrainResult> {
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
    status: RlTrainResult["status"],
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
