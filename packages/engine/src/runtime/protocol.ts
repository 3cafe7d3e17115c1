import type { NamedTensors } from "@tinker-ts/hub/weights";
import type { EngineErrorCategory } from "../errors.js";
import type { DeviceName } from "../execution/device.js";
import type { Int8Support } from "../model/int8-probe.js";
import type { ModelConfig } from "../model/model-config.js";
import type { LoadProgress } from "../model/model-weights.js";
import type { Precision } from "../model/precision.js";
import type { Site } from "../model/sites.js";
import type { SampleOptions } from "../sample/request.js";
import type { SampleResult, TokenEvent } from "../sample/sequence.js";
import type { AdamOptions } from "../train/adam.js";
import type { Datum } from "../train/datum.js";
import type { ParameterExport } from "../train/parameter-state.js";
import type { LossSettings } from "../train/prepare-data.js";
import type { PassProgress, PassResult } from "../train/pass.js";
import type { DeviceTimes } from "../gpu/device-times.js";
import type { DeviceCheck } from "../gpu/self-check.js";

/** The messages of one kind of call. */
interface Call<Request, Response, Event = never> {
  readonly request: Request;
  readonly response: Response;
  /** Sent any number of times before the response. */
  readonly event: Event;
}

/** A model in the worker. */
export interface ModelInfo {
  readonly model: number;
  readonly config: ModelConfig;
  /** Where it was loaded from; null for a model that was made in memory. */
  readonly folder: string | null;
  /** How many tensors of its files belong to parts besides the text model. @default 0 */
  readonly leftOut?: number;
}

/** Trained parameters in the worker: an adapter, or a model's own weights. */
export interface ParametersInfo {
  readonly parameters: number;
  readonly parameterCount: number;
}

/** A forward or forward-backward call. */
export interface PassRequestMessage {
  readonly parameters: number;
  readonly data: readonly Datum[];
  readonly lossFn: string;
  readonly lossFnConfig: LossSettings;
  readonly backward: boolean;
}

/** The result of an optimizer step. */
export interface StepMetrics {
  readonly gradientNorm: number;
  readonly updateNorm: number;
  readonly learningRate: number;
  /** Steps taken so far. */
  readonly step: number;
}

/** Every call that the worker answers. */
export interface EngineCalls {
  /** Compares the worker's device with the processor; fails where they differ. */
  checkDevice: Call<null, DeviceCheck>;
  /** Times a training pass on the worker's device and on the processor. */
  timeDevice: Call<null, DeviceTimes>;
  /** Checks int8 weights on the processor. */
  checkInt8: Call<null, Int8Support>;
  loadModel: Call<{ folder: string; precision: Precision }, ModelInfo, LoadProgress>;
  createModel: Call<
    { config: ModelConfig; seed: number; tensors: NamedTensors | null; precision: Precision },
    ModelInfo
  >;
  unloadModel: Call<{ model: number }, null>;
  createAdapter: Call<
    {
      model: number;
      rank: number;
      alpha: number;
      seed: number;
      sites: readonly Site[];
      forSampling?: boolean;
    },
    ParametersInfo
  >;
  createFullTuning: Call<{ model: number }, ParametersInfo>;
  pass: Call<PassRequestMessage, PassResult, PassProgress>;
  optimStep: Call<{ parameters: number; options: AdamOptions }, StepMetrics>;
  exportState: Call<{ parameters: number; optimizer: boolean }, ParameterExport>;
  exportGradient: Call<{ parameters: number }, NamedTensors>;
  importState: Call<{ parameters: number; state: ParameterExport; optimizer: boolean }, null>;
  releaseParameters: Call<{ parameters: number }, null>;
  snapshot: Call<{ parameters: number }, { snapshot: number }>;
  releaseSnapshot: Call<{ snapshot: number }, null>;
  sample: Call<
    { model: number; snapshot: number | null; options: SampleOptions },
    SampleResult,
    readonly TokenEvent[]
  >;
}

/** Name of a call. */
export type CallName = keyof EngineCalls;

/** Settings of the worker. */
export interface WorkerSettings {
  readonly threads: number;
  /** The device to compute on. */
  readonly device: DeviceName;
  readonly memoryBytes: number;
  /** Memory of a `NativeCalls` that the owner shares. */
  readonly nativeCalls: SharedArrayBuffer;
}

/** From the owner to the worker. */
export type ToWorker =
  | {
      [K in CallName]: {
        readonly kind: "call";
        readonly id: number;
        readonly name: K;
        readonly request: EngineCalls[K]["request"];
        /** Whether to send events: each of them wakes the owner's thread. */
        readonly hasListener: boolean;
      };
    }[CallName]
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "close" };

/** A serialized error. */
export interface ErrorMessage {
  readonly message: string;
  /** Absent if it is not an EngineError. */
  readonly code?: string;
  readonly category?: EngineErrorCategory;
  readonly stack?: string | undefined;
  /** The call was cancelled. */
  readonly aborted: boolean;
}

/** From the worker to its owner. */
export type FromWorker =
  | { readonly kind: "event"; readonly id: number; readonly event: EngineCalls[CallName]["event"] }
  | {
      readonly kind: "response";
      readonly id: number;
      readonly response: EngineCalls[CallName]["response"];
    }
  | { readonly kind: "error"; readonly id: number; readonly error: ErrorMessage };
