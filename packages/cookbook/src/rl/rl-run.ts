import type { SamplingClient, TrainingClient } from "tinker-ts";
import type { RunLog, StepSpans } from "tinker-ts/run-log";
import { runEvaluators } from "../evaluation/index.js";
import { adamDefaults } from "../hyperparameters/index.js";
import { failUnlessFinite, type CheckpointKeeper, type OpenRun } from "../runs/index.js";
import { BatchUpdate } from "./batch-update.js";
import { LearningCheck, type CheckedStep } from "./learning-check.js";
import { prePostMetrics, trajectoryMetrics } from "./metrics.js";
import { scoreData } from "./penalties.js";
import { GroupPlayer } from "./play-groups.js";
import { samplingPolicy, type Policy } from "./policy.js";
import type { PolicyDatum } from "./policy-datum.js";
import { rolloutSummaries, shownRollouts, transcripts } from "./records.js";
import type { CompleteRlOptions } from "./train-options.js";
import type { Numbers, TrajectoryGroup } from "./types.js";

/** The common part of all modes: the model, the log, the player, and the work before and after an update. */
export class RlRun {
  readonly options: CompleteRlOptions;
  readonly training: TrainingClient;
  readonly log: RunLog;
  readonly keeper: CheckpointKeeper;
  readonly player: GroupPlayer;
  readonly check: LearningCheck;
  readonly totalSteps: number;
  readonly #decode: ((tokens: Iterable<number>) => string) | undefined;

  constructor(parts: {
    readonly options: CompleteRlOptions;
    readonly open: OpenRun;
    readonly totalSteps: number;
    readonly decode: ((tokens: Iterable<number>) => string) | undefined;
  }) {
    const { options, open, totalSteps } = parts;
    this.options = options;
    this.training = open.training;
    this.log = open.log;
    this.keeper = open.keeper;
    this.totalSteps = totalSteps;
    const { loss, maxTokens, maxFailedSteps } = options;
    this.check = new LearningCheck({
      warn: (text) => open.warn(text),
      maxFailedSteps,
      maxTokens,
      learnsFromAdvantages: loss.name !== "own_targets" && loss.name !== "custom",
    });
    this.player = new GroupPlayer({ ...options, onError: (error) => this.check.failed(error) });
    this.#decode = parts.decode;
  }

  /** A policy with the current weights: requests run in the order of submission. */
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

  /** Runs the evaluators when they are due before a step. */
  async evaluateBefore(step: number): Promise<Numbers> {
    const { evalEvery, evaluators = [], signal } = this.options;
    if (evaluators.length === 0 || evalEvery === 0 || step % evalEvery !== 0) return {};
    return runEvaluators(evaluators, { training: this.training, step, log: this.log, signal });
  }

  /** The distance of the updated policy from the one that sampled, where the options ask for it. */
  async postKl(data: readonly PolicyDatum[]): Promise<Numbers> {
    const { computePostKl, signal } = this.options;
    if (!computePostKl || data.length === 0) return {};
    const updated = await this.training.saveWeightsAndGetSamplingClient();
    const logprobs = await scoreData(data, (sequence) => updated.computeLogprobs(sequence), {
      signal,
    });
    return prePostMetrics(data, logprobs);
  }

  /** Logs the episodes that a step was trained on. */
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

  /** Logs a finished step and checks that it learned something. */
  finishStep(checked: CheckedStep, found: Numbers, spans: StepSpans): void {
    const { step, groups } = checked;
    this.check.add(checked);
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
    const { "optim/loss": loss, "optim/kl_sample_train_v1": drift } = found;
    const watched = { "optim/loss": loss, "optim/kl_sample_train_v1": drift };
    failUnlessFinite(step, watched, this.options.learningRate);
  }

  /**
   * Ends the run as failed when all episodes of several steps failed. The steps before them are saved first, so that a
   * resumed run plays the failed ones again.
   */
  async failAfterErrors(step: number, tokens: number): Promise<void> {
    try {
      this.check.failAfterErrors();
    } catch (error) {
      const first = step + 1 - this.check.failedSteps;
      if (first > (this.keeper.savedStep ?? 0)) {
        await this.keeper.saveNow({ step: first, batch: first }, tokens, {});
      }
      throw error;
    }
  }
}
