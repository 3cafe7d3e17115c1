import type { Datum, ForwardBackwardOutput, OptimStepResponse } from "tinker-ts";
import { RunLog, StepSpans, type CheckpointRow } from "tinker-ts/run-log";
import { nllEvaluator, runEvaluators, type Evaluator } from "../evaluation/index.js";
import {
  adamDefaults,
  recommendedLearningRate,
  scheduleMultiplier,
} from "../hyperparameters/index.js";
import {
  CheckpointKeeper,
  checkSameRun,
  EarlyStop,
  openTraining,
  warnOfChanges,
} from "../runs/index.js";
import { isPrepared, prepareData, type PreparedData } from "./prepare-data.js";
import { sizeOf, stepMetrics, type StepSize } from "./step-metrics.js";
import {
  completeOptions,
  toConfig,
  type CompleteOptions,
  type TrainOptions,
} from "./train-options.js";

/** How a run ended. */
export interface TrainResult {
  /** `unchanged`: there was nothing left to do. */
  readonly status: "completed" | "stopped_early" | "interrupted" | "unchanged";
  /** Steps done, those of earlier attempts included. */
  readonly step: number;
  readonly totalSteps: number;
  /** The last checkpoint: the final one, or the one to go on from. Undefined when nothing was trained. */
  readonly checkpoint: CheckpointRow | undefined;
  readonly folder: string;
  /** What the last evaluation found. */
  readonly evaluation: Readonly<Record<string, number>>;
}

/** A step that is submitted and whose results are to come. */
interface PendingStep {
  readonly step: number;
  readonly data: readonly Datum[];
  readonly size: StepSize;
  readonly pass: PromiseLike<ForwardBackwardOutput>;
  readonly update: PromiseLike<OptimStepResponse>;
  readonly spans: StepSpans;
  readonly known: Readonly<Record<string, number>>;
  /** Resolves when the step is in the log. */
  readonly logged: Promise<void>;
  readonly settle: (failure?: { readonly error: unknown }) => void;
}

/**
 * Fine-tunes a model on examples: everything from a file of conversations to saved weights.
 *
 * A folder that holds a run is gone on with; the result is the same as if it had never stopped.
 */
export async function train(options: TrainOptions): Promise<TrainResult> {
  const complete = completeOptions(options);
  const { model } = complete;
  const learningRate =
    complete.learningRate === "auto" ? recommendedLearningRate(model) : complete.learningRate;
  const { data, folder, ifExists, sinks } = complete;
  const prepared = isPrepared(data) ? data : await prepareData({ ...complete, data });
  const config = toConfig(complete, learningRate, prepared);
  const run = await RunLog.open({ folder, ifExists, sinks, config });
  try {
    checkSameRun(run, { model_name: model, lora_rank: complete.loraRank });
    warnOfChanges(run, config, ["log_path", "max_steps", "num_epochs"]);
    return await runSteps(complete, { run, prepared, learningRate });
  } catch (error) {
    run.text(String(error), "error");
    throw error;
  } finally {
    await run.close();
  }
}

async function runSteps(
  options: CompleteOptions,
  parts: { readonly run: RunLog; readonly prepared: PreparedData; readonly learningRate: number },
): Promise<TrainResult> {
  const { run, prepared, learningRate } = parts;
  const { service, signal, submitAhead, numEpochs, lrSchedule, warmupSteps } = options;
  const { dataset, tokenizer } = prepared;
  const perEpoch = dataset.batchesPerEpoch;
  const totalSteps = Math.min(perEpoch * numEpochs, options.maxSteps ?? Number.POSITIVE_INFINITY);
  const positionOf = (step: number) => ({
    step,
    epoch: Math.floor(step / perEpoch),
    batch: step % perEpoch,
  });

  const { training, row } = await openTraining({
    ...options,
    run,
    rank: options.loraRank,
    userMetadata: {
      recipe_name: options.recipeName,
      ...(prepared.renderer && { renderer_name: prepared.renderer.name }),
    },
  });
  const startStep = (row?.epoch ?? 0) * perEpoch + (row?.batch ?? 0);
  const early = new EarlyStop(options.earlyStop ?? { patience: Number.POSITIVE_INFINITY }, row);
  const rest = service.createRestClient();
  const resumedFrom = row && { row, step: startStep };
  const keeper = new CheckpointKeeper({ training, rest, run, options, resumedFrom });
  const evaluators = withTestSet(options.evaluators ?? [], prepared);
  let tokens = Number(row?.extra?.["elapsed_tokens"] ?? 0);
  let step = startStep;
  let evaluation: Record<string, number> = {};
  const result = (status: TrainResult["status"], checkpoint: CheckpointRow | undefined) => {
    return { status, step, totalSteps, checkpoint, folder: run.folder, evaluation };
  };
  options.onProgress?.({ step, totalSteps, metrics: {} });
  if (startStep >= totalSteps || early.isDue) {
    await keeper.removeRolling();
    return result("unchanged", row);
  }

  const drain = async ({ settle, ...pending }: PendingStep): Promise<void> => {
    const { spans, data, size } = pending;
    try {
      const [pass, update] = await spans.span("step", () =>
        Promise.all([pending.pass, pending.update]),
      );
      const computed = stepMetrics(data, size, pass, update, tokenizer);
      const metrics = { ...pending.known, ...computed, ...spans.metrics() };
      run.log(metrics, { step: pending.step });
      run.logSpans(pending.step, spans.spans);
      options.onProgress?.({ step: pending.step + 1, totalSteps, metrics });
      settle();
    } catch (error) {
      settle({ error });
      throw error;
    }
  };

  const pending: PendingStep[] = [];
  for (; step < totalSteps && !early.isDue; step++) {
    if (signal?.aborted) break;
    const position = positionOf(step);
    const spans = new StepSpans();
    const data = await spans.span("data", () => dataset.batch(position.epoch, position.batch));
    const size = sizeOf(data);
    // A save belongs before the step it is named after; requests run in the order they are made.
    const logged = pending.at(-1)?.logged ?? Promise.resolve();
    keeper.beforeStep(position, { tokens, logged, extra: early.state });
    const due = dueEvaluators(step, evaluators, options);
    const found = await spans.span("eval", () => evaluate(due, { training, step, signal }));
    if (found === "interrupted") break;
    Object.assign(evaluation, found);
    early.add(found);

    const rate = learningRate * scheduleMultiplier(lrSchedule, step, totalSteps, { warmupSteps });
    const pass = training.forwardBackward(data, "cross_entropy");
    const update = training.optimStep({
      ...adamDefaults,
      ...options.adamParams,
      learningRate: rate,
    });
    const known = {
      epoch: position.epoch,
      progress: Math.min(1, (step + 1) / totalSteps),
      learning_rate: rate,
      ...found,
    };
    pending.push({ step, data, size, pass, update, spans, known, ...settling() });
    tokens += size.tokens;
    if (pending.length > submitAhead) await drain(pending.shift()!);
  }
  for (const left of pending) await drain(left);

  if (step < totalSteps && !early.isDue) {
    return result("interrupted", await keeper.saveNow(positionOf(step), tokens, early.state));
  }
  const last = await evaluate(evaluators, { training, step, signal });
  if (last !== "interrupted" && evaluators.length > 0) {
    Object.assign(evaluation, last);
    run.log(last, { step });
  }
  const final = await keeper.finish(positionOf(step), tokens, early.state);
  return result(early.isDue ? "stopped_early" : "completed", final);
}

function withTestSet(
  evaluators: readonly Evaluator[],
  { test, tokenizer }: PreparedData,
): readonly Evaluator[] {
  return test.length === 0 ? evaluators : [nllEvaluator(test, { tokenizer }), ...evaluators];
}

function dueEvaluators(
  step: number,
  evaluators: readonly Evaluator[],
  options: CompleteOptions,
): readonly Evaluator[] {
  const { evalEvery, infrequentEvalEvery, infrequentEvaluators = [] } = options;
  const isDue = (every: number): boolean => every > 0 && step % every === 0;
  return [
    ...(isDue(evalEvery) ? evaluators : []),
    ...(isDue(infrequentEvalEvery) ? infrequentEvaluators : []),
  ];
}

/** An evaluation that the signal ended is nothing; what was trained before is saved all the same. */
async function evaluate(
  evaluators: readonly Evaluator[],
  context: Parameters<typeof runEvaluators>[1],
): Promise<Record<string, number> | "interrupted"> {
  try {
    return await runEvaluators(evaluators, context);
  } catch (error) {
    if (context.signal?.aborted) return "interrupted";
    throw error;
  }
}

/** A promise that is told from outside; nobody needs to listen to it. */
function settling(): Pick<PendingStep, "logged" | "settle"> {
  let settle!: PendingStep["settle"];
  const logged = new Promise<void>((resolve, reject) => {
    settle = (failure) => (failure ? reject(failure.error) : resolve());
  });
  logged.catch(() => {});
  return { logged, settle };
}
