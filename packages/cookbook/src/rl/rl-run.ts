import type { SamplingClient, TrainingClient } from "tinker-ts";
import { type RunLog, type StepSpans } from "tinker-ts/run-log";
import { runEvaluators } from "../evaluation/index.js";
import { adamDefaults } from "../hyperparameters/index.js";
import type { CheckpointKeeper } from "../runs/index.js";

import { BatchUpdate } from "./batch-update.js";
import { prePostMetrics, trajectoryMetrics } from "./metrics.js";
import { scoreData } from "./penalties.js";
import { GroupPlayer } from "./play-groups.js";
import { samplingPolicy, type Policy } from "./policy.js";
import type { PolicyDatum } from "./policy-datum.js";
import { rolloutSummaries, shownRollouts, transcripts } from "./records.js";
import type { CompleteRlOptions } from "./train-options.js";
import type { Numbers, TrajectoryGroup } from "./types.js";

/** What all modes share: the model, the log, the player, and what is done around an update. */
export class RlRun {
  readonly options: CompleteRlOptions;
  readonly training: TrainingClient;
  readonly log: RunLog;
  readonly keeper: CheckpointKeeper;
  readonly player: GroupPlayer;
  readonly totalSteps: number;
  readonly #decode: ((tokens: Iterable<number>) => string) | undefined;

  constructor(parts: {
    readonly options: CompleteRlOptions;
    readonly training: TrainingClient;
    readonly log: RunLog;
    readonly keeper: CheckpointKeeper;
    readonly totalSteps: number;
    readonly decode: ((tokens: Iterable<number>) => string) | undefined;
  }) {
    this.options = parts.options;
    this.training = parts.training;
    this.log = parts.log;
    this.keeper = parts.keeper;
    this.totalSteps = parts.totalSteps;
    this.player = new GroupPlayer(parts.options);
    this.#decode = parts.decode;
  }

  /** A policy with the weights as they are at this point of the order. */
  async currentPolicy(): Promise<Policy> {
    const sampling: SamplingClient = await this.training.saveWeightsAndGetSamplingClient();
    return samplingPolicy(sampling, this.options);
  }

  /** The updates of a step. */
  update(step: number): BatchUpdate {
    const { loss, learningRate, adamParams } = this.options;
    return new BatchUpdate(this.training, {
      loss,
      step,
      adamParams: { ...adamDefaults, ...adamParams, learningRate },
    });
  }

  /** Evaluates when that is due before a step. */
  async evaluateBefore(step: number): Promise<Numbers> {
    const { evalEvery, evaluators = [], signal } = this.options;
    if (evaluators.length === 0 || evalEvery === 0 || step % evalEvery !== 0) return {};
    return runEvaluators(evaluators, { training: this.training, step, log: this.log, signal });
  }

  /** How far the updated policy is from the one that sampled, where that is wanted. */
  async postKl(data: readonly PolicyDatum[]): Promise<Numbers> {
    const { computePostKl, signal } = this.options;
    if (!computePostKl || data.length === 0) return {};
    const updated = await this.training.saveWeightsAndGetSamplingClient();
    const logprobs = await scoreData(data, (sequence) => updated.computeLogprobs(sequence), {
      signal,
    });
    return prePostMetrics(data, logprobs);
  }

  /** Writes down which episodes a step was trained on. */
  record(
    step: number,
    groups: readonly TrajectoryGroup[],
    data: readonly PolicyDatum[],
    samplerSteps: readonly number[],
  ): void {
    const place = { split: "train", iteration: step, samplerSteps };
    const summaries = rolloutSummaries(groups, place);
    if (summaries.length > 0)
      this.log.logIteration(step, "train_rollout_summaries.jsonl", summaries);
    const { numGroupsToLog } = this.options;
    if (numGroupsToLog > 0) {
      this.log.logRollouts(step, shownRollouts(groups.slice(0, numGroupsToLog), data));
    }
    const shown = data.filter(({ group }) => group < this.options.numGroupsToLog);
    if (shown.length > 0) {
      this.log.logIteration(
        step,
        "train_transcripts.jsonl",
        transcripts(shown, place, { groups, decode: this.#decode }),
      );
    }
  }

  /** Logs a step that is done. */
  finishStep(
    step: number,
    groups: readonly TrajectoryGroup[],
    found: Numbers,
    spans: StepSpans,
  ): void {
    const metrics = {
      "progress/batch": step,
      "progress/done_frac": Math.min(1, (step + 1) / this.totalSteps),
      ...trajectoryMetrics(groups),
      ...this.player.metrics(),
      ...found,
      ...spans.metrics(),
    };
    this.log.log(metrics, { step });
    this.log.logSpans(step, spans.spans);
    this.options.onProgress?.({ step: step + 1, totalSteps: this.totalSteps, metrics });
  }
}
