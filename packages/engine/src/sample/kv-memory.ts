import type { DeviceArray } from "../execution/device-array.js";
import type { DeviceMemory } from "../gpu/device-memory.js";

/** An array of keys or values: of the processor's, or on a device as soon as it has been made there. */
export type KvArray = Float32Array | LateArray;

/** An array that a device makes when the calls before it are done. */
export interface LateArray {
  readonly length: number;
  made: DeviceArray | undefined;
}

/** Start of the copied tokens, in tokens of one head. */
export interface CopiedHead {
  readonly from: number;
  readonly to: number;
}

/** Memory of keys and values. */
export interface KvMemory {
  take(length: number): KvArray;
  giveBack(...arrays: readonly KvArray[]): void;
  /** Copies `count` tokens of some heads; both arrays may be the same. Arrays of the processor are copied without it. */
  copy?(
    source: KvArray,
    target: KvArray,
    heads: readonly CopiedHead[],
    count: number,
    headWidth: number,
  ): void;
}

/**
 * Memory of keys and values on a device.
 *
 * Sequences join, leave and move between groups in one go, but a device makes and copies arrays one call after
 * the other. So operations are queued, and run in the same order before the device reads a cache.
 */
export class DeviceKvMemory implements KvMemory {
  readonly #memory: DeviceMemory;
  #waiting: (() => Promise<void>)[] = [];

  constructor(memory: DeviceMemory) {
    this.#memory = memory;
  }

  take(length: number): LateArray {
    const array: LateArray = { length, made: undefined };
    if (length === 0) return array;
    this.#waiting.push(async () => {
      array.made = await this.#memory.take(length);
    });
    return array;
  }

  giveBack(...arrays: readonly KvArray[]): void {
    for (const array of arrays) {
      if (array instanceof Float32Array) continue;
      this.#waiting.push(async () => {
        if (array.made !== undefined) this.#memory.giveBack(array.made);
        array.made = undefined;
      });
    }
  }

  copy(
    source: KvArray,
    target: KvArray,
    heads: readonly CopiedHead[],
    count: number,
    headWidth: number,
  ): void {
    if (count === 0) return;
    const from = rowsOf(heads, "from", count);
    const to = rowsOf(heads, "to", count);
    this.#waiting.push(async () => {
      if (!(target instanceof Float32Array)) {
        const input = source instanceof Float32Array ? source : madeOf(source);
        await this.#memory.copyRows(input, from, madeOf(target), to, headWidth);
      } else if (!(source instanceof Float32Array)) {
        const rows = new Float32Array(from.length * headWidth);
        await this.#memory.downloadRows(madeOf(source), from, rows, headWidth);
        for (const [index, row] of to.entries()) {
          target.set(rows.subarray(index * headWidth, (index + 1) * headWidth), row * headWidth);
        }
      }
    });
  }

  /** Queues an operation; it runs after those queued before it, while nothing reads a cache. */
  later(work: () => Promise<void>): void {
    this.#waiting.push(work);
  }

  /** Whether all queued operations are done. */
  get isSettled(): boolean {
    return this.#waiting.length === 0;
  }

  /** Runs queued operations; after a failure, those not done yet stay queued. */
  async settle(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      await next();
    }
  }
}

/** The array that a device has made. */
export function madeOf(array: LateArray): DeviceArray {
  if (array.made === undefined) throw new Error("the device has not made this array");
  return array.made;
}

function rowsOf(heads: readonly CopiedHead[], end: "from" | "to", count: number): Int32Array {
  const rows = new Int32Array(heads.length * count);
  for (const [index, head] of heads.entries()) {
    for (let token = 0; token < count; token++) rows[index * count + token] = head[end] + token;
  }
  return rows;
}
