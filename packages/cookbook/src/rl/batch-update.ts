import type {
  AdamParamsInput,
  ForwardBackwardOutput,
  OptimStepResponse,
  SamplingClient,
  TrainingClient,
} from "tinker-ts";
import { mergeMetrics, prefixed, sampleTrainMetrics } from "./metrics.js";
import {
  batchToData,
  type PolicyDatum,
  type PolicyLoss,
  readyForLoss,
  submitPolicyPass,
} from "./policy-datum.js";
import type { Numbers, TrajectoryGroup } from "./types.js";
import { computeAdvantages, isConstant, type AdvantageEstimator } from "./advantages.js";
import { penalizeDistance, scoreData, type Penalized, type PenaltyOptions } from "./penalties.js";

/** How a batch is trained. */
export interface UpdateOptions {
  /** The loss on sampled tokens. */
  readonly loss: PolicyLoss;
  /** The optimizer. */
  readonly adamParams: AdamParamsInput;
  /** The step that the batch belongs to. */
  readonly step: number;
}

/** The passes and updates of one batch: submitted as its data come, awaited together. */
export class BatchUpdate {
  readonly #training: TrainingClient;
  readonly #options: UpdateOptions;
  readonly #passes: {
    readonly data: readonly PolicyDatum[];
    readonly result: PromiseLike<ForwardBackwardOutput>;
  }[] = [];
  readonly #steps: PromiseLike<OptimStepResponse>[] = [];
  #hasGradient = false;

  constructor(training: TrainingClient, options: UpdateOptions) {
    this.#training = training;
    this.#options = options;
  }

  /** Everything that was submitted. */
  get data(): readonly PolicyDatum[] {
    return this.#passes.flatMap(({ data }) => data);
  }

  /** Submits a pass; without data there is none. */
  async pass(data: readonly PolicyDatum[]): Promise<void> {
    if (data.length === 0) return;
    const { loss, step } = this.#options;
    const ready = await readyForLoss(this.#training, data, loss);
    this.#passes.push({ data, result: submitPolicyPass(this.#training, ready, loss, step) });
    this.#hasGradient = true;
  }

  /** Submits an update, if there were data for one. */
  step(): void {
    if (!this.#hasGradient) return;
    this.#hasGradient = false;
    this.#steps.push(this.#training.optimStep(this.#options.adamParams));
  }

  /** Waits for all passes and updates and returns their metrics: means over updates, sums of losses. */
  async settle(): Promise<Numbers> {
    const outputs = await Promise.all(this.#passes.map(({ result }) => result));
    const steps = await Promise.all(this.#steps);
    const losses = outputs.map(({ metrics }) => metrics["loss/total"] ?? metrics["loss:sum"] ?? 0);
    return {
      ...this.#passMetrics(outputs),
      ...prefixed("optim/", mergeMetrics(steps.map(({ metrics }) => metrics ?? {}))),
      "optim/updates": steps.length,
      "optim/loss": losses.reduce((sum, loss) => sum + loss, 0),
      "optim/lr": this.#options.adamParams.learningRate ?? 0,
    };
  }

  /** The distance of the model from the sampler; for targets that were not sampled, the metrics of their loss. */
  #passMetrics(outputs: readonly ForwardBackwardOutput[]): Numbers {
    if (this.#options.loss.name === "own_targets") return targetMetrics(outputs);
    const logprobs = outputs.flatMap(({ lossFnOutputs }) =>
      lossFnOutputs.map((output) => output["logprobs"]!.data as Float32Array),
    );
    return sampleTrainMetrics(this.data, logprobs);
  }
}

/** Means of the metrics of the passes, without those of the server. */
function targetMetrics(outputs: readonly ForwardBackwardOutput[]): Numbers {
  const means = mergeMetrics(outputs.map(({ metrics }) => metrics));
  return Object.fromEntries(Object.entries(means).filter(([name]) => !name.includes(":")));
}

/** The context of an adjuster. */
export interface AdjustContext {
  /** The step that the data are for. */
  readonly step: number;
  /** The model; what is asked of it here comes before the step's own update. */
  readonly training: TrainingClient;
  /** Aborts the work. */
  readonly signal?: AbortSignal | undefined;
}

/** Changes the data of a batch before they are trained, for instance by a penalty. */
export type DataAdjuster = (
  data: readonly PolicyDatum[],
  groups: readonly TrajectoryGroup[],
  context: AdjustContext,
) => Promise<Penalized>;

/** Options of `prepareBatch`. */
export interface PrepareOptions {
  /** How rewards become advantages. */
  readonly advantages: AdvantageEstimator;
  /** Whether groups of equal rewards are left out. */
  readonly removeConstantRewardGroups: boolean;
  /** Applied one after the other. */
  readonly adjusters: readonly DataAdjuster[];
}

/** Data that are ready for training. */
export interface PreparedBatch {
  /** The data; `group` counts the groups that were kept. */
  readonly data: readonly PolicyDatum[];
  /** The groups that were kept. */
  readonly groups: readonly TrajectoryGroup[];
  /** Metrics of the preparation. */
  readonly metrics: Numbers;
}

/** Turns episodes into data with advantages. */
export async function prepareBatch(
  played: readonly TrajectoryGroup[],
  { advantages, removeConstantRewardGroups, adjusters }: PrepareOptions,
  context: AdjustContext,
): Promise<PreparedBatch> {
  const groups = removeConstantRewardGroups ? played.filter((group) => !isConstant(group)) : played;
  // What was masked from end to end has nothing to teach.
  let data: readonly PolicyDatum[] = batchToData(
    groups,
    computeAdvantages(groups, advantages),
  ).filter(({ mask }) => mask.includes(1));
  const metrics: Record<string, number> = removeConstantRewardGroups
    ? { "rollouts/constant_groups": played.length - groups.length }
    : {};
  for (const adjust of adjusters) {
    const adjusted = await adjust(data, groups, context);
    data = adjusted.data;
    Object.assign(metrics, adjusted.metrics);
  }
  return { data, groups, metrics };
}

/** Keeps the policy near a model that a client samples from. */
export function klPenalty(reference: SamplingClient, options: PenaltyOptions): DataAdjuster {
  return async (data, _groups, { signal }) => {
    const references = await scoreData(
      data,
      (sequence) => reference.computeLogprobs(sequence, signal ? { signal } : {}),
      {
        signal,
      },
    );
    return penalizeDistance(data, references, options);
  };
}
