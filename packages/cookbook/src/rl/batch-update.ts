import type {
  AdamParamsInput,
  ForwardBackwardOutput,
  OptimStepResponse,
  TrainingClient,
} from "tinker-ts";
import { mergeMetrics, prefixed, sampleTrainMetrics } from "./metrics.js";
import type { PolicyDatum } from "./policy-datum.js";
import { readyForLoss, submitPolicyPass, type PolicyLoss } from "./policy-loss.js";
import type { Numbers } from "./types.js";

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
