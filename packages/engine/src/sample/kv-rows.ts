import type { KvArray, KvMemory } from "./kv-memory.js";

/** Sizes of a model's keys and values. */
export interface KvShape {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headWidth: number;
}

/** Bytes that keys and values of one token take. */
export function kvBytesPerToken({ layers, kvHeads, headWidth }: KvShape): number {
  return layers * 2 * kvHeads * headWidth * 4;
}

/**
 * Cached keys and values of several sequences, laid out as the decoder reads them: per layer
 * [rows, kvHeads, capacity, headWidth], used rows first. Places without a token hold anything.
 */
export class KvRows {
  readonly shape: KvShape;
  readonly capacity: number;
  readonly rowCapacity: number;
  /** Keys of every layer, then values. */
  readonly #arrays: readonly KvArray[];
  /** What has to be given back. */
  readonly #taken: readonly KvArray[];
  readonly #lengths: Int32Array;
  readonly #memory: KvMemory | undefined;

  /** The memory comes from `memory` and goes back with `release`; without one it is the processor's. */
  constructor(shape: KvShape, capacity: number, rowCapacity: number, memory?: KvMemory) {
    this.shape = shape;
    this.capacity = capacity;
    this.rowCapacity = rowCapacity;
    const size = rowCapacity * this.#rowSize();
    const places = Array.from({ length: 2 * shape.layers }, (_, index) => index * size);
    if (memory?.copy === undefined) {
      // One array, not one of each layer: what is large enough the system hands out page by page, and places that no
      // token ever takes cost nothing. Smaller ones the C library would cut from what others left, and clear.
      const length = places.length * size;
      const whole = memory?.take(length) ?? new Float32Array(length);
      if (!(whole instanceof Float32Array)) throw new Error("the cache lies on a device");
      this.#arrays = places.map((start) => whole.subarray(start, start + size));
      this.#taken = [whole];
    } else {
      this.#arrays = places.map(() => memory.take(size));
      this.#taken = this.#arrays;
    }
    this.#lengths = new Int32Array(rowCapacity);
    this.#memory = memory;
  }

  /** Gives the memory back; the store must not be used any more. */
  release(): void {
    this.#memory?.giveBack(...this.#taken);
  }

  /** Tokens in a row. */
  length(row: number): number {
    return this.#lengths[row] ?? 0;
  }

  /** Keys of the first `rows` rows. */
  keys(layer: number, rows: number): KvArray {
    return this.#firstRows(this.#of("keys", layer), rows);
  }

  /** Values of the first `rows` rows. */
  values(layer: number, rows: number): KvArray {
    return this.#firstRows(this.#of("values", layer), rows);
  }

  /** Tokens in each of the first `rows` rows. */
  lengths(rows: number): Int32Array {
    return this.#lengths.subarray(0, rows);
  }

  /** Counts tokens that were written behind those of a row. */
  extend(row: number, count: number): void {
    this.#lengths[row] = this.#endAfter(row, count);
  }

  /** Empties a row. */
  clear(row: number): void {
    this.#lengths[row] = 0;
  }

  /** Appends tokens of a row of this or another store to a row. */
  appendFrom(source: KvRows, from: number, start: number, count: number, row: number): void {
    const { kvHeads, headWidth } = this.shape;
    const place = this.length(row);
    const end = this.#endAfter(row, count);
    const heads = Array.from({ length: kvHeads }, (_, head) => ({
      from: (from * kvHeads + head) * source.capacity + start,
      to: (row * kvHeads + head) * this.capacity + place,
    }));
    // Only memory of a device knows how to copy what lies there.
    const memory = this.#memory?.copy === undefined ? source.#memory : this.#memory;
    for (let layer = 0; layer < this.shape.layers; layer++) {
      for (const kind of ["keys", "values"] as const) {
        const [input, output] = [source.#of(kind, layer), this.#of(kind, layer)];
        if (input instanceof Float32Array && output instanceof Float32Array) {
          for (const { from: first, to } of heads) {
            const part = input.subarray(first * headWidth, (first + count) * headWidth);
            output.set(part, to * headWidth);
          }
        } else {
          memory?.copy?.(input, output, heads, count, headWidth);
        }
      }
    }
    this.#lengths[row] = end;
  }

  /** Makes a row the copy of a row of this or another store. */
  copyRow(source: KvRows, from: number, row: number): void {
    this.clear(row);
    this.appendFrom(source, from, 0, source.length(from), row);
  }

  /** A store for another number of rows with copies of the first `rows` rows. */
  resized(rowCapacity: number, rows: number): KvRows {
    const resized = new KvRows(this.shape, this.capacity, rowCapacity, this.#memory);
    for (let row = 0; row < rows; row++) resized.copyRow(this, row, row);
    return resized;
  }

  #endAfter(row: number, count: number): number {
    const end = this.length(row) + count;
    if (end > this.capacity) throw new RangeError("the row is full");
    return end;
  }

  #of(kind: "keys" | "values", layer: number): KvArray {
    const { layers } = this.shape;
    const array =
      layer < layers ? this.#arrays[kind === "keys" ? layer : layers + layer] : undefined;
    if (array === undefined) throw new RangeError(`no layer ${layer}`);
    return array;
  }

  /** Arrays of a device are not divided: programs read the beginning. */
  #firstRows(array: KvArray, rows: number): KvArray {
    return array instanceof Float32Array ? array.subarray(0, rows * this.#rowSize()) : array;
  }

  #rowSize(): number {
    return this.shape.kvHeads * this.capacity * this.shape.headWidth;
  }
}
