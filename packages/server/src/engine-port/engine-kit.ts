import type { DeviceChoice, ModelConfig, ParameterExport } from "@tinker-ts/engine";
import type { LoraSettings } from "../store/models-table.js";
import type { EnginePort } from "./engine-port.js";

/** What is known of a base model without loading its weights. */
export type ModelFacts = Pick<ModelConfig, "architecture" | "contextLength" | "vocabSize">;

/** A base model on this machine. */
export interface FoundModel {
  readonly folder: string;
  readonly isFromHub: boolean;
}

/** An adapter on its way to disk. */
export interface StoredAdapter {
  readonly lora: LoraSettings;
  readonly baseModel: string;
  readonly state: ParameterExport;
}

/** An adapter that was made elsewhere. */
export interface ForeignAdapter extends Pick<StoredAdapter, "lora" | "state"> {
  /** Why it can be sampled from and not be trained; absent where it can. */
  readonly samplingOnly?: string;
}

/** Everything the server takes from the engine package; loaded when first needed. */
export interface EngineKit {
  /** Starts an engine, on the device of the settings unless another is wanted. */
  createEngine(options?: { readonly device?: DeviceChoice }): Promise<EnginePort>;
  /** Where a model is: a folder as it is, a hub id in the cache or on the hub. */
  findModel(
    location: string,
    options: { onProgress: (text: string) => void; signal: AbortSignal },
  ): Promise<FoundModel>;
  readFacts(folder: string): Promise<ModelFacts>;
  /**
   * Writes a PEFT adapter, with Adam's state where there is one; the folder appears complete or not at
   * all. `onWritten` may add files before it appears.
   */
  writeAdapter(
    folder: string,
    adapter: StoredAdapter,
    onWritten: (unfinished: string) => Promise<void>,
  ): Promise<void>;
  /** Reads an adapter back; `modelFolder` is that of its base model. */
  readAdapter(folder: string, modelFolder: string): Promise<ParameterExport>;
  /** Reads an adapter that was made elsewhere, with the settings it was made with. */
  readForeignAdapter(folder: string, modelFolder: string): Promise<ForeignAdapter>;
}
