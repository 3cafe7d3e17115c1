import { freeMemory } from "../util/free-memory.js";
import type { ValueMemory } from "./device-array.js";
import type { PortValues } from "./program.js";

/** Buffers may hold this much regardless of past use. */
const freelyKeptBytes = 2 ** 31;

/**
 * Reuses large arrays between runs.
 *
 * Fresh memory costs a page fault per 4 KB, which for activations is as slow as computing them. Arrays
 * are handed out as views of buffers. Capacities are rounded to a few sizes per power of two, so a
 * slightly different batch finds the buffers of the last one. Beyond a fixed amount, used and unused
 * buffers together hold no more than was ever in use at once: a long sequence after a shorter one
 * replaces its buffers.
 */
export class BufferPool implements ValueMemory<Float32Array> {
  readonly #free = new Map<number, ArrayBuffer[]>();
  #freeBytes = 0;
  #takenBytes = 0;
  #mostTakenBytes: number;

  constructor(keepBytes = freelyKeptBytes) {
    this.#mostTakenBytes = keepBytes;
  }

  /** Bytes that the pool holds, in use or not. */
  get heldBytes(): number {
    return this.#takenBytes + this.#freeBytes;
  }

  /** An array with arbitrary contents. */
  take(length: number): Float32Array {
    const capacity = roundedBytes(length * 4);
    const buffer = this.#free.get(capacity)?.pop();
    if (buffer !== undefined) this.#freeBytes -= capacity;
    else if (this.heldBytes + capacity > this.#mostTakenBytes) this.trim(0);
    this.#takenBytes += capacity;
    this.#mostTakenBytes = Math.max(this.#mostTakenBytes, this.#takenBytes);
    return new Float32Array(buffer ?? new ArrayBuffer(capacity), 0, length);
  }

  /** Returns arrays of `take` to the pool; they must not be used any more. */
  giveBack(...arrays: readonly Float32Array[]): void {
    for (const { buffer } of arrays) {
      if (!(buffer instanceof ArrayBuffer)) throw new TypeError("not an array of this pool");
      const list = this.#free.get(buffer.byteLength) ?? [];
      if (list.includes(buffer)) throw new Error("an array was given back twice");
      list.push(buffer);
      this.#free.set(buffer.byteLength, list);
      this.#freeBytes += buffer.byteLength;
      this.#takenBytes -= buffer.byteLength;
    }
  }

  clear(values: Float32Array): void {
    values.fill(0);
  }

  copyRows(
    source: Float32Array,
    from: ArrayLike<number>,
    target: Float32Array,
    to: ArrayLike<number>,
    width: number,
  ): void {
    for (let i = 0; i < from.length; i++) {
      const start = (from[i] ?? 0) * width;
      target.set(source.subarray(start, start + width), (to[i] ?? 0) * width);
    }
  }

  bring(values: Float32Array): Float32Array {
    return values;
  }

  fetch(values: Float32Array): Float32Array {
    return values;
  }

  place(feeds: PortValues): PortValues {
    return feeds;
  }

  /** Frees unused buffers when they hold more than `keepBytes`. */
  trim(keepBytes: number): void {
    if (this.#freeBytes <= keepBytes) return;
    freeMemory([...this.#free.values()].flat());
    this.#free.clear();
    this.#freeBytes = 0;
  }
}

/** Rounds up to 5, 6, 7 or 8 times a power of two. */
export function roundedBytes(bytes: number): number {
  const smallest = 4096;
  if (bytes <= smallest) return smallest;
  const step = 2 ** (Math.ceil(Math.log2(bytes)) - 3);
  return Math.ceil(bytes / step) * step;
}
