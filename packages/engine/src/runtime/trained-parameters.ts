import { EngineError } from "../errors.js";
import type { Site } from "../model/sites.js";
import type { FrozenAdapter } from "../sample/adapter-set.js";
import { completeAdamOptions, type AdamOptions } from "../train/adam.js";
import { adapterLayout, fullLayout, type ParameterLayout } from "../model/parameter-layout.js";
import { ParameterState, type ParameterExport } from "../train/parameter-state.js";
import { prepareData } from "../train/prepare-data.js";
import type { PassProgress, PassResult } from "../train/pass.js";
import { Trainer } from "../train/trainer.js";
import { SerialQueue } from "../util/turns.js";
import type { LoadedModel } from "./loaded-model.js";
import type { EngineCalls, PassRequestMessage, StepMetrics } from "./protocol.js";
import { RandomStream } from "../util/random.js";

/** Callbacks of a pass. */
export interface PassContext {
  readonly pause: () => Promise<void>;
  readonly onProgress?: ((progress: PassProgress) => void) | undefined;
}

/** An adapter of a model, or its own weights, while they are being trained. */
export class TrainedParameters {
  readonly model: LoadedModel;
  readonly state: ParameterState;
  /** Calls on these parameters, in the order in which they came. */
  readonly queue = new SerialQueue();
  readonly #trainer: Trainer;
  readonly #forSampling: boolean;
  readonly #adapter: {
    readonly rank: number;
    readonly scale: number;
    readonly sites: readonly Site[];
  };

  private constructor(
    model: LoadedModel,
    layout: ParameterLayout,
    values: Float32Array,
    trainer: Trainer,
    adapter: { rank: number; scale: number; sites: readonly Site[] },
    forSampling = false,
  ) {
    this.model = model;
    this.state = new ParameterState(layout, values);
    this.#trainer = trainer;
    this.#adapter = adapter;
    this.#forSampling = forSampling;
  }

  static adapter(
    model: LoadedModel,
    options: Omit<EngineCalls["createAdapter"]["request"], "model">,
  ): TrainedParameters {
    const { rank, alpha, seed, sites, forSampling } = options;
    const layout = adapterLayout(model.config, sites, rank);
    const trainer = new Trainer(
      model.runtime,
      { kind: "adapter", sites, merged: false },
      model.budget,
      model.merged,
    );
    const adapter = { rank, scale: alpha / rank, sites };
    const values = initialAdapter(layout, seed);
    return new TrainedParameters(model, layout, values, trainer, adapter, forSampling);
  }

  static async full(model: LoadedModel): Promise<TrainedParameters> {
    const layout = fullLayout(model.config);
    if (model.config.precision !== undefined) throw frozenWeights();
    const { embedding, layers, outer } = await model.runtime.trainingWeights();
    if (!(embedding instanceof Float32Array)) throw frozenWeights();
    const values = new Float32Array(layout.length);
    for (const { place, feed, offset } of layout.feeds) {
      const source = place === "outer" ? { embedding, ...outer }[feed] : layers[place]?.[feed];
      if (source !== undefined) values.set(source, offset);
    }
    const trainer = new Trainer(model.runtime, { kind: "full" }, model.budget, model.merged);
    return new TrainedParameters(model, layout, values, trainer, { rank: 0, scale: 0, sites: [] });
  }

  /** Runs a forward or forward-backward call; a call that fails adds no gradient. */
  async pass(request: PassRequestMessage, context: PassContext): Promise<PassResult> {
    const { data, lossFn, lossFnConfig, backward } = request;
    const prepared = prepareData(this.model.config, data, lossFn, lossFnConfig);
    const { layout, values, version } = this.state;
    const { rank, scale } = this.#adapter;
    const parameters = { layout, values, rank, scale, version };
    if (!backward) return this.#trainer.run({ ...prepared, parameters, ...context });
    this.#refuseTraining();
    const gradient = this.state.borrowGradient();
    try {
      const result = await this.#trainer.run({ ...prepared, parameters, gradient, ...context });
      this.state.addGradient(gradient);
      return result;
    } catch (error) {
      this.state.returnGradient(gradient);
      throw error;
    }
  }

  async step(options: AdamOptions): Promise<StepMetrics> {
    this.#refuseTraining();
    const complete = completeAdamOptions(options);
    const report = await this.state.step(this.model.runtime.processorPrograms, complete);
    return { ...report, learningRate: complete.learningRate };
  }

  /** Replaces the values; a sampling-only adapter sets missing values to zero. */
  import(state: ParameterExport, withOptimizer: boolean): void {
    const tensors = this.#forSampling ? this.state.completed(state.tensors) : state.tensors;
    this.state.import({ ...state, tensors }, withOptimizer);
  }

  #refuseTraining(): void {
    if (!this.#forSampling) return;
    throw new EngineError(
      "sampling_only",
      "the adapter was made for sampling alone; make one without forSampling to train it.",
    );
  }

  /** The current values as an adapter that does not change any more. */
  freeze(id: string): FrozenAdapter {
    return { id, ...this.#adapter, layout: this.state.layout, values: this.state.freeze() };
  }
}

function frozenWeights(): EngineError {
  return new EngineError(
    "frozen_weights",
    "the model was loaded with int8 weights, which cannot be trained themselves; train an adapter, or " +
      'load the model with weights: "f32".',
  );
}

/**
 * Initial values of an adapter: first factors uniform in ±1/sqrt(inputs), as PEFT draws them, and second
 * factors zero, so that a new adapter changes nothing. Each tensor has a stream of its own: its values
 * depend on the seed, its position and its width, not on which other tensors exist.
 */
function initialAdapter(layout: ParameterLayout, seed: number): Float32Array {
  const values = new Float32Array(layout.length);
  for (const { name, offset, shape } of layout.tensors) {
    const [rows = 0, inputs = 0] = shape;
    if (!name.endsWith("lora_A.weight")) continue;
    const random = new RandomStream(seed, ...nameWords(name));
    const bound = 1 / Math.sqrt(inputs);
    for (let i = 0; i < rows * inputs; i++) {
      values[offset + i] = (random.next() * 2 - 1) * bound;
    }
  }
  return values;
}

function nameWords(name: string): readonly number[] {
  return Array.from(name, (character) => character.codePointAt(0) ?? 0);
}
