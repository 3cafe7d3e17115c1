import type { Adapter, BaseModel, Engine, SampleRequest, Snapshot } from "@tinker-ts/engine";

/*
 * The part of the engine that the server uses, in the engine's own types: the engine itself is loaded
 * when the first model is needed, and tests can put something with controllable timing in its place.
 */

/** Weights frozen for sampling. */
export type FrozenWeights = Pick<Snapshot, "id" | "release">;

/** An adapter that is being trained; operations run in the order of the calls. */
export interface TrainedAdapter extends Pick<
  Adapter,
  "forward" | "forwardBackward" | "optimStep" | "exportState" | "importState" | "release"
> {
  snapshot(): Promise<FrozenWeights>;
}

/** A base model in memory. */
export interface LoadedModel extends Pick<
  BaseModel,
  "contextLength" | "vocabSize" | "precision" | "sample"
> {
  /** How many tensors of its files belong to parts that are not loaded, such as vision. */
  readonly leftOut?: number;
  createAdapter(...options: Parameters<BaseModel["createAdapter"]>): Promise<TrainedAdapter>;
}

/** The engine. */
export interface EnginePort
  extends Pick<Engine, "close">, Partial<Pick<Engine, "device" | "checkInt8">> {
  loadModel(...options: Parameters<Engine["loadModel"]>): Promise<LoadedModel>;
}

/** What to sample, apart from the weights. */
export type SampleOrder = Omit<SampleRequest, "adapter" | "signal" | "onToken"> & {
  readonly prompt: Int32Array;
  readonly numSamples: number;
  readonly seed: number;
};
