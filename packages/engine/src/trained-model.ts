import type { NamedTensors } from "@tinker-ts/hub/weights";
import type { ParametersInfo, StepMetrics } from "./runtime/protocol.js";
import type { WorkerClient } from "./runtime/worker-client.js";
import type { AdamOptions } from "./train/adam.js";
import type { Datum } from "./train/datum.js";
import type { ParameterExport } from "./train/parameter-state.js";
import type { LossSettings } from "./train/prepare-data.js";
import type { PassProgress, PassResult } from "./train/pass.js";

/** How a forward or forward-backward call is made. */
export interface PassOptions {
  /** `cross_entropy`, `importance_sampling`, `ppo`, `cispo` or `dro`. */
  readonly lossFn: string;
  /** Settings of the loss, such as `clip_low_threshold`. @default the loss's own */
  readonly lossFnConfig?: LossSettings;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: PassProgress) => void;
}

/** State to export or import besides the parameters. */
export interface StateOptions {
  /** Include the optimizer, to resume training exactly. @default false */
  readonly optimizer?: boolean;
}

/** Parameters that can be trained. Calls run in the order in which they were made, awaited or not. */
export class TrainedModel {
  readonly parameterCount: number;
  protected readonly client: WorkerClient;
  protected readonly parameters: number;

  constructor(client: WorkerClient, info: ParametersInfo) {
    this.client = client;
    this.parameters = info.parameters;
    this.parameterCount = info.parameterCount;
  }

  /** Log-probabilities and loss, without gradients. */
  forward(data: readonly Datum[], options: PassOptions): Promise<PassResult> {
    return this.#pass(data, options, false);
  }

  /** Log-probabilities, loss and gradients, which are added up until the next `optimStep`. */
  forwardBackward(data: readonly Datum[], options: PassOptions): Promise<PassResult> {
    return this.#pass(data, options, true);
  }

  /** One step of AdamW with the accumulated gradients, which are then cleared. */
  optimStep(options: AdamOptions): Promise<StepMetrics> {
    return this.client.call("optimStep", { parameters: this.parameters, options });
  }

  /** The parameters by name and, if wanted, the state of the optimizer. */
  exportState({ optimizer = false }: StateOptions = {}): Promise<ParameterExport> {
    return this.client.call("exportState", { parameters: this.parameters, optimizer });
  }

  /** The accumulated gradients by name; they are not cleared. */
  exportGradient(): Promise<NamedTensors> {
    return this.client.call("exportGradient", { parameters: this.parameters });
  }

  /** Replaces the parameters and clears gradients; without `optimizer` its state is reset. */
  async importState(
    state: ParameterExport,
    { optimizer = false }: StateOptions = {},
  ): Promise<void> {
    await this.client.call("importState", { parameters: this.parameters, state, optimizer });
  }

  /** Frees the parameters. */
  async release(): Promise<void> {
    await this.client.call("releaseParameters", { parameters: this.parameters });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  #pass(data: readonly Datum[], options: PassOptions, backward: boolean): Promise<PassResult> {
    const { lossFn, lossFnConfig = {}, signal, onProgress } = options;
    return this.client.call(
      "pass",
      { parameters: this.parameters, data, lossFn, lossFnConfig, backward },
      { signal, onEvent: onProgress },
    );
  }
}
