import os from "node:os";
import type { DownloadProgress } from "@tinker-ts/hub";
import type { NamedTensors } from "@tinker-ts/hub/weights";
import type { ModelConfig } from "./model/model-config.js";
import { BaseModel } from "./base-model.js";
import { EngineError } from "./errors.js";
import { chosenDevice, type DeviceChoice, type EngineDevice } from "./gpu/device-choice.js";
import { findModel } from "./find-model.js";
import type { LoadProgress } from "./model/model-weights.js";
import type { Int8Support } from "./model/int8-probe.js";
import type { DigitCount, Precision } from "./model/precision.js";
import { defaultMemoryBytes } from "./runtime/memory-plan.js";
import { WorkerClient } from "./runtime/worker-client.js";

/** Settings of an engine. */
export interface EngineOptions {
  /** Threads that compute. @default all cores */
  readonly threads?: number;
  /**
   * Device to compute on: the processor, a GPU through WebGPU (refused unless its results agree), or
   * the faster of the two. One engine of a process can use the GPU at a time. @default "cpu"
   */
  readonly device?: DeviceChoice;
  /** Memory that models, activations and caches may take together. @default 60 % of the machine's */
  readonly memoryBytes?: number;
}

/** Precision of a model. */
export interface PrecisionOptions {
  /**
   * Frozen weights in 32 bits, or in 8: a quarter of the memory and about twice the speed, for adapters
   * alone.
   * @default "f32"
   */
  readonly weights?: "f32" | "int8";
  /**
   * How activations are quantized before they are multiplied by int8 weights: to one 8-bit digit, which is
   * faster, or to 16 bits, with closer agreement between sampling and training.
   * @default "int16"
   */
  readonly activations?: "int8" | "int16";
  /**
   * Number of digits, to compute exactly as another model did.
   * @default chosen by `activations` and this processor: one, two of 8 bits, or three of 7
   */
  readonly digits?: DigitCount;
}

/** How a model is found and loaded. */
export interface LoadModelOptions extends PrecisionOptions {
  readonly signal?: AbortSignal;
  /** Called while weights are read into memory. */
  readonly onProgress?: (progress: LoadProgress) => void;
  /** Called while files arrive from the hub. */
  readonly onDownload?: (progress: DownloadProgress) => void;
}

/** A new model: random, or with given weights. */
export interface CreateModelOptions extends PrecisionOptions {
  /** Random seed of the weights. @default 0 */
  readonly seed?: number;
  /** The weights by their Hugging Face names. @default random ones */
  readonly tensors?: NamedTensors;
  readonly signal?: AbortSignal;
}

/**
 * Trains and samples models on this machine.
 *
 * All work is done by one worker thread and the threads of ONNX Runtime, so the caller's event loop stays
 * free. The process can end while an engine is open but idle.
 */
export class Engine {
  /** The device in use, and the reason for the choice. */
  readonly device: EngineDevice;
  readonly #client: WorkerClient;

  private constructor(client: WorkerClient, device: EngineDevice) {
    this.#client = client;
    this.device = device;
  }

  /** Starts an engine. */
  static async create(options: EngineOptions = {}): Promise<Engine> {
    const settings = {
      threads: options.threads ?? os.availableParallelism(),
      memoryBytes: options.memoryBytes ?? defaultMemoryBytes(),
    };
    positive("threads", settings.threads);
    positive("memoryBytes", settings.memoryBytes);
    const { client, device } = await chosenDevice(options.device ?? "cpu", settings);
    return new Engine(client, device);
  }

  /**
   * Loads a model from a Hugging Face folder or by its id: the embedded `tinker-ts/sprout`, or one of the
   * hub, such as `Qwen/Qwen3-0.6B`.
   */
  async loadModel(idOrFolder: string, options: LoadModelOptions = {}): Promise<BaseModel> {
    const { signal, onProgress, onDownload } = options;
    const precision = precisionOf(options);
    const { folder } = await findModel(idOrFolder, {
      ...(signal === undefined ? {} : { signal }),
      ...(onDownload === undefined ? {} : { onProgress: onDownload }),
    });
    const request = { folder, precision };
    const info = await this.#client.call("loadModel", request, { signal, onEvent: onProgress });
    return new BaseModel(this.#client, info);
  }

  /**
   * Speed and exactness of int8 weights on this processor. Loading a model with int8 weights checks it too,
   * and falls back to 32 bits where they do not help, as `model.precision` then shows.
   */
  async checkInt8(): Promise<Int8Support> {
    return this.#client.call("checkInt8", null);
  }

  /** Makes a model of a configuration, to train all its weights or to use weights from memory. */
  async createModel(config: ModelConfig, options: CreateModelOptions = {}): Promise<BaseModel> {
    const { seed = 0, tensors = null, signal } = options;
    const request = { config, seed, tensors, precision: precisionOf(options) };
    const info = await this.#client.call("createModel", request, { signal });
    return new BaseModel(this.#client, info);
  }

  /** Ends the engine; calls that are still running fail. */
  async close(): Promise<void> {
    await this.#client.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function positive(name: string, value: number): void {
  if (Number.isSafeInteger(value) && value > 0) return;
  throw new EngineError(
    "invalid_option",
    `${name} is ${value}; it must be a whole number above 0.`,
  );
}

function precisionOf({ weights = "f32", activations, digits }: PrecisionOptions): Precision {
  oneOf("weights", weights, ["f32", "int8"]);
  if (activations !== undefined) oneOf("activations", activations, ["int8", "int16"]);
  if (digits !== undefined) oneOf("digits", digits, [1, 2, 3]);
  if (weights === "int8") {
    const written = { weights, activations: activations ?? "int16" } as const;
    return digits === undefined ? written : { ...written, digits };
  }
  if (activations === undefined && digits === undefined) return { weights };
  const [name, value] =
    activations === undefined ? ["digits", digits] : ["activations", `"${activations}"`];
  throw new EngineError(
    "invalid_option",
    `${name} is ${value}, which says how values meet int8 weights; ` +
      `set weights to "int8" too, or leave ${name} out.`,
  );
}

function oneOf<T extends string | number>(name: string, value: T, known: readonly T[]): void {
  if (known.includes(value)) return;
  throw new EngineError(
    "invalid_option",
    `${name} is ${JSON.stringify(value)}; it must be ${known.map((one) => JSON.stringify(one)).join(" or ")}.`,
  );
}
