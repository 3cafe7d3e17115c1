import {
  type Mixer,
  mixerOf,
  type NamedTensors,
  openModelFolder,
  type WeightSource,
} from "@tinker-ts/hub/weights";
import { EngineError } from "../errors.js";
import { processor } from "../execution/device.js";
import { gpuDevice } from "../gpu/device.js";
import { NativeCalls } from "../execution/native-calls.js";
import type { Program, ProgramOptions } from "../execution/program.js";
import { initialWeights } from "../model/initial-weights.js";
import type { ModelConfig } from "../model/model-config.js";
import { digitsOf, type Precision } from "../model/precision.js";
import { noAdapter, type FrozenAdapter } from "../sample/adapter-set.js";
import { checkSampleOptions } from "../sample/request.js";
import { FairTurns, SerialQueue } from "../util/turns.js";
import { timeDevice } from "../gpu/device-times.js";
import { probeInt8, type Int8Support } from "../model/int8-probe.js";
import { LoadedModel, type ModelSource } from "./loaded-model.js";
import {
  estimateMemory,
  planMemory,
  refuseSwapping,
  unusedBytes,
  weightBytesOf,
} from "./memory-plan.js";
import type { CallName, EngineCalls, WorkerSettings } from "./protocol.js";
import { checkGpu, openDevice } from "../gpu/self-check.js";
import { TrainedParameters } from "./trained-parameters.js";

/** Helpers of a call in the worker. */
export interface CallContext<K extends CallName = CallName> {
  readonly signal: AbortSignal;
  /** Sends an event before the response; undefined without a listener. */
  readonly emit: ((event: EngineCalls[K]["event"]) => void) | undefined;
}

type Handlers = {
  [K in CallName]: (
    request: EngineCalls[K]["request"],
    context: CallContext<K>,
  ) => Promise<EngineCalls[K]["response"]>;
};

/**
 * The engine as it lives in its worker.
 *
 * - Calls on the same parameters run in the order in which they came.
 * - One training pass runs at a time; sampling takes turns between the programs of a pass.
 */
export class EngineCore {
  readonly handlers: Handlers;
  readonly #settings: WorkerSettings;
  #programs: ProgramOptions;
  readonly #turns = new FairTurns();
  readonly #passes = new SerialQueue();
  readonly #models = new Map<number, LoadedModel>();
  readonly #parameters = new Map<number, TrainedParameters>();
  readonly #snapshots = new Map<number, { adapter: FrozenAdapter; model: LoadedModel }>();
  /** Of models that are loaded or being loaded. */
  readonly #weightBytes = new Map<number, number>();
  #int8Support: Promise<Int8Support> | undefined;
  /** Keeps compiled kernels of the device. */
  #open: Program | undefined;
  #nextId = 1;

  constructor(settings: WorkerSettings) {
    this.#settings = settings;
    this.#programs = {
      threads: settings.threads,
      device: settings.device === "gpu" ? gpuDevice() : processor,
      nativeCalls: new NativeCalls(settings.nativeCalls),
    };
    this.handlers = {
      checkDevice: async () => {
        this.#open ??= await openDevice(this.#programs);
        const { device, check } = await checkGpu(this.#programs);
        this.#programs = { ...this.#programs, device };
        return check;
      },
      timeDevice: () => timeDevice(this.#programs),
      checkInt8: () => this.#int8(),
      loadModel: (request, context) => this.#loadModel(request, context),
      createModel: (request, context) => this.#createModel(request, context),
      unloadModel: ({ model }) => this.#unloadModel(model),
      createAdapter: async ({ model, ...options }) =>
        this.#addParameters(TrainedParameters.adapter(this.#model(model), options)),
      createFullTuning: async ({ model }) =>
        this.#addParameters(await TrainedParameters.full(this.#model(model))),
      pass: (request, context) => this.#pass(request, context),
      optimStep: ({ parameters, options }) =>
        this.#queued(parameters, (trained) => trained.step(options)),
      exportState: ({ parameters, optimizer }) =>
        this.#queued(parameters, ({ state }) => state.export(optimizer)),
      exportGradient: ({ parameters }) =>
        this.#queued(parameters, ({ state }) => state.exportGradient()),
      importState: ({ parameters, state, optimizer }) =>
        this.#queued(parameters, (trained) => {
          trained.import(state, optimizer);
          return null;
        }),
      releaseParameters: ({ parameters }) =>
        this.#queued(parameters, () => {
          this.#parameters.delete(parameters);
          return null;
        }),
      snapshot: ({ parameters }) => this.#queued(parameters, (trained) => this.#snapshot(trained)),
      releaseSnapshot: async ({ snapshot }) => this.#releaseSnapshot(snapshot),
      sample: (request, context) => this.#sample(request, context),
    };
  }

  /** Frees everything. */
  async close(): Promise<void> {
    for (const id of this.#models.keys()) await this.#unloadModel(id);
    await this.#open?.release();
  }

  async #loadModel(
    { folder, precision }: EngineCalls["loadModel"]["request"],
    context: CallContext<"loadModel">,
  ) {
    const opened = await openModelFolder(folder, context.signal);
    try {
      const config = await this.#withPrecision(opened.config, precision);
      const source = { weights: opened.weights, folder: opened.path, isLasting: true };
      const info = await this.#addModel(config, source, context);
      return { ...info, leftOut: opened.ignored.length };
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  async #createModel(
    { config, seed, tensors, precision }: EngineCalls["createModel"]["request"],
    context: CallContext<"createModel">,
  ) {
    const random = initialWeights(config, seed);
    const isLasting = tensors === null;
    const weights = isLasting ? random : givenWeights(random, tensors);
    const computed = await this.#withPrecision(config, precision);
    const source = { weights, folder: null, isLasting };
    return this.#addModel(computed, source, { ...context, emit: undefined });
  }

  /** The model with its effective precision, which may differ from the requested one. */
  async #withPrecision(config: ModelConfig, precision: Precision): Promise<ModelConfig> {
    if (precision.weights === "f32") return config;
    if (this.#settings.device !== "cpu") {
      throw new EngineError(
        "invalid_option",
        'weights is "int8", which the processor alone computes with; use the device "cpu", or weights "f32".',
      );
    }
    const { digitBits, isUsed } = await this.#int8();
    if (!isUsed || digitBits === null) return config;
    const digits = digitsOf({ ...precision, digitBits });
    return { ...config, precision: { ...precision, digits, digitBits } };
  }

  #int8(): Promise<Int8Support> {
    this.#int8Support ??= probeInt8(this.#programs);
    return this.#int8Support;
  }

  async #addModel(
    config: LoadedModel["config"],
    source: ModelSource,
    context: CallContext<"loadModel">,
  ) {
    this.#refuseMissingOperators(config);
    const ownBytes = weightBytesOf(config);
    const others = [...this.#weightBytes.values()].reduce((sum, bytes) => sum + bytes, 0);
    const int8Bytes = estimateMemory(config, { weights: "int8" }).weightBytes;
    const smaller = { weights: "int8", weightBytes: int8Bytes };
    const isFloat = config.precision === undefined;
    const { memoryBytes } = this.#settings;
    const memory = planMemory(memoryBytes, ownBytes, others, isFloat ? smaller : undefined);
    refuseSwapping(
      "the model's weights take",
      ownBytes,
      unusedBytes(),
      isFloat ? smaller : undefined,
    );
    const id = this.#nextId++;
    this.#weightBytes.set(id, ownBytes);
    try {
      const options = { signal: context.signal, onProgress: context.emit };
      const turns = this.#turns;
      const model = await LoadedModel.load(config, source, this.#programs, memory, turns, options);
      this.#models.set(id, model);
    } catch (error) {
      this.#weightBytes.delete(id);
      throw error;
    }
    return { model: id, config, folder: source.folder };
  }

  /** WebGPU supports attention only: other mixers have not been checked there. */
  #refuseMissingOperators({ architecture, layerKinds = [] }: ModelConfig): void {
    if (this.#settings.device === "cpu") return;
    const mixer = layerKinds.map(mixerOf).find((own) => own !== "attention");
    if (mixer === undefined) return;
    throw new EngineError(
      "unsupported_model",
      `models of the family ${architecture} have ${mixerNames[mixer]}, which the GPU does not compute here; ` +
        'use the device "cpu".',
    );
  }

  async #unloadModel(id: number): Promise<null> {
    const model = this.#model(id);
    this.#models.delete(id);
    const ended = [...this.#parameters].filter(([, trained]) => trained.model === model);
    for (const [key] of ended) this.#parameters.delete(key);
    for (const [key, snapshot] of this.#snapshots) {
      if (snapshot.model === model) this.#snapshots.delete(key);
    }
    // The running call still uses the model; waiting calls find its parameters released.
    await Promise.all(ended.map(([, { queue }]) => queue.add(() => {})));
    await this.#passes.add(() => model.release());
    this.#weightBytes.delete(id);
    return null;
  }

  #addParameters(trained: TrainedParameters) {
    const id = this.#nextId++;
    this.#parameters.set(id, trained);
    return { parameters: id, parameterCount: trained.state.layout.length };
  }

  #pass(request: EngineCalls["pass"]["request"], context: CallContext<"pass">) {
    const { signal, emit } = context;
    const run = async (trained: TrainedParameters) => {
      const turn = this.#turns.enter("train");
      const pause = async (): Promise<void> => {
        await turn.take();
        signal.throwIfAborted();
      };
      try {
        trained.model.prepareTraining();
        return await trained.pass(request, { pause, onProgress: emit });
      } finally {
        turn.leave();
      }
    };
    return this.#queued(
      request.parameters,
      (trained) => this.#passes.add(() => run(trained), signal),
      signal,
    );
  }

  #snapshot(trained: TrainedParameters): { snapshot: number } {
    const id = this.#nextId++;
    const adapter = trained.freeze(`snapshot-${id}`);
    this.#snapshots.set(id, { adapter, model: trained.model });
    return { snapshot: id };
  }

  #releaseSnapshot(id: number): null {
    const snapshot = this.#snapshots.get(id);
    this.#snapshots.delete(id);
    snapshot?.model.sampler.forget(snapshot.adapter.id);
    return null;
  }

  async #sample(request: EngineCalls["sample"]["request"], context: CallContext<"sample">) {
    const model = this.#model(request.model);
    const options = checkSampleOptions(model.config, request.options);
    model.prepareSampling();
    const { signal, emit } = context;
    const text = options.stopStrings.length > 0 ? await model.tokenText() : undefined;
    const constraint =
      options.constraint === null ? undefined : await model.constraint(options.constraint);
    signal.throwIfAborted();
    return model.sampler.sample({
      options,
      adapter: this.#adapterOf(request.snapshot, model),
      text,
      constraint,
      signal,
      onTokens: emit,
    });
  }

  #adapterOf(id: number | null, model: LoadedModel): FrozenAdapter {
    if (id === null) return noAdapter();
    const snapshot = this.#snapshots.get(id);
    if (snapshot === undefined) throw released("snapshot");
    if (snapshot.model === model) return snapshot.adapter;
    throw new EngineError("wrong_model", "the snapshot belongs to another model than the request.");
  }

  #queued<T>(
    id: number,
    task: (trained: TrainedParameters) => Promise<T> | T,
    signal?: AbortSignal,
  ): Promise<T> {
    const trained = this.#parameters.get(id);
    if (trained === undefined) throw released("adapter");
    return trained.queue.add(() => {
      if (!this.#parameters.has(id)) throw released("adapter");
      return task(trained);
    }, signal);
  }

  #model(id: number): LoadedModel {
    const model = this.#models.get(id);
    if (model === undefined) throw released("model");
    return model;
  }
}

/** Names of the mixers other than attention, for messages. */
const mixerNames: Readonly<Record<Mixer, string>> = {
  attention: "attention",
  deltaRule: "layers with the gated delta rule",
  convolution: "layers with a short convolution",
  mamba: "Mamba layers",
};

function released(what: string): EngineError {
  return new EngineError("released", `the ${what} was released and cannot be used any more.`);
}

/** Weights that the caller holds in memory, checked against the expected ones. */
function givenWeights(expected: WeightSource, tensors: NamedTensors): WeightSource {
  for (const [name, { shape }] of expected.tensors) {
    const given = tensors.get(name);
    if (given === undefined)
      throw new EngineError("missing_tensor", `tensors: "${name}" is missing.`);
    const length = shape.reduce((product, dim) => product * dim, 1);
    if (given.shape.join() !== shape.join() || given.data.length !== length) {
      throw new EngineError(
        "wrong_shape",
        `tensors: "${name}" has shape [${given.shape.join(", ")}] instead of [${shape.join(", ")}].`,
      );
    }
  }
  return {
    ...expected,
    read: (name) => {
      const tensor = tensors.get(name);
      if (tensor === undefined) throw new EngineError("missing_tensor", `"${name}" is missing.`);
      return Promise.resolve(tensor.data);
    },
  };
}
