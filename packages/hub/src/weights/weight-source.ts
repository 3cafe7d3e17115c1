/** Number formats of stored weights that the engine can read. */
export type StoredDtype = "F32" | "F16" | "BF16";

/** One stored tensor, described by the header. */
export interface StoredTensor {
  readonly name: string;
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
}

/** Named tensors on disk, sharded or not; `read` converts to 32-bit floats into `target` or a new array. */
export interface WeightSource {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  read(name: string, target?: Float32Array, signal?: AbortSignal): Promise<Float32Array>;
  close(): Promise<void>;
}
