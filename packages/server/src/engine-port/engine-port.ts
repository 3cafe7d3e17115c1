/*
 * The part of the engine that the server uses, as types only: the engine itself is loaded when the
 * first model is needed, and tests can put something with controllable timing in its place.
 */

/** Numbers with a shape. */
export interface PortTensor {
  readonly data: Float32Array | Int32Array;
  readonly shape: readonly number[];
}

/** One training example: tokens to read, and for every position what the loss is about. */
export interface PortDatum {
  readonly tokens: Int32Array;
  readonly inputs: Readonly<Record<string, PortTensor>>;
}

/** Which loss, and its settings. */
export interface PortLoss {
  readonly lossFn: string;
  readonly lossFnConfig?: Readonly<Record<string, number>>;
  readonly signal?: AbortSignal;
}

/** What a pass over data gives back, one output per datum. */
export interface PortPass {
  readonly outputs: readonly {
    readonly logprobs: Float32Array;
    readonly shape: readonly number[];
  }[];
  readonly metrics: Readonly<Record<string, number>>;
}

/** Settings of one optimizer step. */
export interface PortStep {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly gradClipNorm: number;
}

/** What an adapter is made with. */
export interface PortAdapterOptions {
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
  readonly trainAttn: boolean;
  readonly trainMlp: boolean;
  readonly trainUnembed: boolean;
}

/** Named arrays of 32-bit floats. */
export type PortTensors = ReadonlyMap<
  string,
  { readonly shape: readonly number[]; readonly data: Float32Array }
>;

/** What Adam remembers of an adapter, under the names of its tensors. */
export interface PortOptimizerState {
  readonly step: number;
  readonly firstMoments: PortTensors;
  readonly secondMoments: PortTensors;
}

/** The whole of an adapter's numbers: weights by their PEFT names, and Adam's state where asked for. */
export interface PortAdapterState {
  readonly tensors: PortTensors;
  readonly optimizer?: PortOptimizerState;
}

/** Weights frozen for sampling. */
export interface PortWeights {
  release(): Promise<void>;
}

/** An adapter that is being trained; operations run in the order of the calls. */
export interface PortAdapter {
  forward(data: readonly PortDatum[], loss: PortLoss): Promise<PortPass>;
  forwardBackward(data: readonly PortDatum[], loss: PortLoss): Promise<PortPass>;
  optimStep(step: PortStep): Promise<Readonly<Record<string, number>>>;
  snapshot(): Promise<PortWeights>;
  exportState(options: { optimizer: boolean }): Promise<PortAdapterState>;
  importState(state: PortAdapterState, options: { optimizer: boolean }): Promise<void>;
  release(): Promise<void>;
}

/** What to sample. */
export interface PortSampleOptions {
  readonly adapter?: PortWeights;
  readonly prompt: Int32Array;
  readonly numSamples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topK: number;
  readonly topP: number;
  readonly seed: number;
  readonly stopTokens: readonly number[];
  readonly stopStrings: readonly string[];
  readonly promptLogprobs: boolean;
  readonly topkPromptLogprobs: number;
  readonly signal?: AbortSignal;
  readonly onToken?: (index: number, token: number, logprob: number) => void;
}

/** What came out. */
export interface PortSampleResult {
  readonly sequences: readonly {
    readonly tokens: Int32Array;
    readonly logprobs: Float32Array;
    readonly stopReason: "stop" | "length";
  }[];
  readonly promptLogprobs?: readonly (number | null)[];
  readonly topkPromptLogprobs?: readonly (readonly (readonly [number, number])[] | null)[];
  readonly promptCacheHitTokens: number;
}

/** A base model in memory. */
export interface PortModel {
  readonly contextLength: number;
  readonly vocabSize: number;
  createAdapter(options: PortAdapterOptions): Promise<PortAdapter>;
  sample(options: PortSampleOptions): Promise<PortSampleResult>;
  unload(): Promise<void>;
}

/** The engine. */
export interface EnginePort {
  loadModel(
    folder: string,
    options: { readonly signal?: AbortSignal; readonly onProgress?: (progress: unknown) => void },
  ): Promise<PortModel>;
  close(): Promise<void>;
}
