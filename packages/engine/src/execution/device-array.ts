import type { PortValues } from "./program.js";
import { Tensor } from "./onnxruntime.js";

/** Element types of arrays on a device. */
export type DeviceType = "float32" | "int32" | "int64";

/** An array in the memory of a device; it may be shorter than the memory that it lies in. */
export class DeviceArray {
  readonly dtype: DeviceType;
  readonly length: number;
  readonly #memory: Tensor;

  /** @internal ONNX Runtime's types are not for users of the package. */
  constructor(memory: Tensor, dtype: DeviceType, length: number) {
    this.#memory = memory;
    this.dtype = dtype;
    this.length = length;
  }

  /** @internal The array, or its beginning, as a tensor of some shape. */
  tensor(dims: readonly number[]): Tensor {
    return Tensor.fromGpuBuffer(this.#memory.gpuBuffer, { dataType: this.dtype, dims });
  }
}

/** Values on the processor or on a device. */
export type Values = Float32Array | DeviceArray;

/**
 * Where values between programs lie. Passes over a model do not depend on whether that is the processor's
 * memory or a device's.
 */
export interface ValueMemory<V extends Values = Values> {
  /** An array with arbitrary contents. */
  take(length: number): V | Promise<V>;
  /** Returns arrays to the pool; they must not be used any more. */
  giveBack(...values: readonly V[]): void;
  /** Zeroes an array. */
  clear(values: V): void | Promise<void>;
  /** `target[to[i]] = source[from[i]]`, by rows of some width. */
  copyRows(
    source: V,
    from: ArrayLike<number>,
    target: V,
    to: ArrayLike<number>,
    width: number,
  ): void | Promise<void>;
  /** Moves an array from the processor to where programs read it; the array must not be used any more. */
  bring(values: Float32Array): V | Promise<V>;
  /** The reverse of `bring`. */
  fetch(values: V): Float32Array | Promise<Float32Array>;
  /** Shared feeds, in the memory where programs read them. */
  place(feeds: PortValues): PortValues | Promise<PortValues>;
}
