import type { BufferPool } from "../execution/buffer-pool.js";

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
  readonly #keys: readonly Float32Array[];
  readonly #values: readonly Float32Array[];
  readonly #lengths: Int32Array;
  readonly #pool: BufferPool | undefined;

  /** With a pool, the memory comes from there and goes back with `release`. */
  constructor(shape: KvShape, capacity: number, rowCapacity: number, pool?: BufferPool) {
    this.shape = shape;
    this.capacity = capacity;
    this.rowCapacity = rowCapacity;
    const size = rowCapacity * this.#rowSize();
    const arrays = (): Float32Array[] =>
      Array.from({ length: shape.layers }, () => pool?.take(size) ?? new Float32Array(size));
    this.#keys = arrays();
    this.#values = arrays();
    this.#lengths = new Int32Array(rowCapacity);
    this.#pool = pool;
  }

  /** Gives the memory back; the store must not be used any more. */
  release(): void {
    this.#pool?.giveBack(...this.#keys, ...this.#values);
  }

  /** Tokens in a row. */
  length(row: number): number {
    return this.#lengths[row] ?? 0;
  }

  /** Keys of the first `rows` rows. */
  keys(layer: number, rows: number): Float32Array {
    return this.#array(this.#keys, layer).subarray(0, rows * this.#rowSize());
  }

  /** Values of the first `rows` rows. */
  values(layer: number, rows: number): Float32Array {
    return this.#array(this.#values, layer).subarray(0, rows * this.#rowSize());
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
    for (let layer = 0; layer < this.shape.layers; layer++) {
      for (const kind of ["keys", "values"] as const) {
        const [input, output] = [source.#of(kind, layer), this.#of(kind, layer)];
        for (let head = 0; head < kvHeads; head++) {
          const first = ((from * kvHeads + head) * source.capacity + start) * headWidth;
          const target = ((row * kvHeads + head) * this.capacity + place) * headWidth;
          output.set(input.subarray(first, first + count * headWidth), target);
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
    const resized = new KvRows(this.shape, this.capacity, rowCapacity, this.#pool);
    for (let row = 0; row < rows; row++) resized.copyRow(this, row, row);
    return resized;
  }

  #endAfter(row: number, count: number): number {
    const end = this.length(row) + count;
    if (end > this.capacity) throw new RangeError("the row is full");
    return end;
  }

  #of(kind: "keys" | "values", layer: number): Float32Array {
    return this.#array(kind === "keys" ? this.#keys : this.#values, layer);
  }

  #array(arrays: readonly Float32Array[], layer: number): Float32Array {
    const array = arrays[layer];
    if (array === undefined) throw new RangeError(`no layer ${layer}`);
    return array;
  }

  #rowSize(): number {
    return this.shape.kvHeads * this.capacity * this.shape.headWidth;
  }
}
