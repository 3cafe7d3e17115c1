/** Sizes of a model's keys and values. */
export interface KvShape {
  readonly layers: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** New keys and values by layer, each [tokens, kvHeads * headDim]. */
export interface NewKeyValues {
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
}

/** Capacities are multiples of this: larger ones are read in vain, smaller ones outgrown too often. */
const capacityStep = 64;

/** Places that are always left free. See `capacityFor`. */
const freePlaces = 32;

const hidden = -1e30;

/**
 * The capacity for a number of tokens. The last places stay unused: kernels treat the end of an array in
 * another order than the rest, and only if no token ever stands there a result is independent of the
 * capacity, bit for bit.
 */
export function capacityFor(tokens: number): number {
  return Math.ceil((tokens + freePlaces) / capacityStep) * capacityStep;
}

/** Bytes that keys and values of one token take. */
export function kvBytesPerToken({ layers, kvHeads, headDim }: KvShape): number {
  return layers * 2 * kvHeads * headDim * 4;
}

/**
 * Cached keys and values of several sequences, laid out as the decoder reads them: per layer
 * [rows, kvHeads, capacity, headDim], used rows first.
 */
export class KvRows {
  readonly shape: KvShape;
  readonly capacity: number;
  readonly rowCapacity: number;
  readonly #keys: readonly Float32Array[];
  readonly #values: readonly Float32Array[];
  readonly #mask: Float32Array;
  readonly #lengths: Int32Array;

  constructor(shape: KvShape, capacity: number, rowCapacity: number) {
    this.shape = shape;
    this.capacity = capacity;
    this.rowCapacity = rowCapacity;
    const size = rowCapacity * this.#rowSize();
    this.#keys = Array.from({ length: shape.layers }, () => new Float32Array(size));
    this.#values = Array.from({ length: shape.layers }, () => new Float32Array(size));
    this.#mask = new Float32Array(rowCapacity * capacity).fill(hidden);
    this.#lengths = new Int32Array(rowCapacity);
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

  /** What the first `rows` rows may see. */
  mask(rows: number): Float32Array {
    return this.#mask.subarray(0, rows * this.capacity);
  }

  /** Appends `count` tokens to a row, taken from token `first` of the new ones on. */
  append(row: number, fresh: NewKeyValues, first: number, count: number): void {
    const start = this.length(row);
    if (start + count > this.capacity) throw new RangeError("the row is full");
    for (let layer = 0; layer < this.shape.layers; layer++) {
      this.#store(this.#array(this.#keys, layer), row, start, fresh.keys[layer], first, count);
      this.#store(this.#array(this.#values, layer), row, start, fresh.values[layer], first, count);
    }
    this.#mask.fill(0, row * this.capacity + start, row * this.capacity + start + count);
    this.#lengths[row] = start + count;
  }

  /** Empties a row. */
  clear(row: number): void {
    this.#mask.fill(hidden, row * this.capacity, (row + 1) * this.capacity);
    this.#lengths[row] = 0;
  }

  /** Appends tokens of a row of this or another store to a row. */
  appendFrom(source: KvRows, from: number, start: number, count: number, row: number): void {
    const { kvHeads, headDim } = this.shape;
    const end = this.length(row);
    if (end + count > this.capacity) throw new RangeError("the row is full");
    for (let layer = 0; layer < this.shape.layers; layer++) {
      for (const kind of ["keys", "values"] as const) {
        const [input, output] = [source.#of(kind, layer), this.#of(kind, layer)];
        for (let head = 0; head < kvHeads; head++) {
          const first = ((from * kvHeads + head) * source.capacity + start) * headDim;
          const target = ((row * kvHeads + head) * this.capacity + end) * headDim;
          output.set(input.subarray(first, first + count * headDim), target);
        }
      }
    }
    this.#mask.fill(0, row * this.capacity + end, row * this.capacity + end + count);
    this.#lengths[row] = end + count;
  }

  /** Makes a row the copy of a row of this or another store. */
  copyRow(source: KvRows, from: number, row: number): void {
    this.clear(row);
    this.appendFrom(source, from, 0, source.length(from), row);
  }

  /** A store of another size with copies of the first `rows` rows. */
  resized(capacity: number, rowCapacity: number, rows: number): KvRows {
    const resized = new KvRows(this.shape, capacity, rowCapacity);
    for (let row = 0; row < rows; row++) resized.copyRow(this, row, row);
    return resized;
  }

  #store(
    target: Float32Array,
    row: number,
    start: number,
    fresh: Float32Array | undefined,
    first: number,
    count: number,
  ): void {
    if (fresh === undefined) throw new RangeError("new keys or values of a layer are missing");
    const { kvHeads, headDim } = this.shape;
    for (let token = 0; token < count; token++) {
      for (let head = 0; head < kvHeads; head++) {
        const source = ((first + token) * kvHeads + head) * headDim;
        const place = (row * kvHeads + head) * this.capacity + start + token;
        target.set(fresh.subarray(source, source + headDim), place * headDim);
      }
    }
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
    return this.shape.kvHeads * this.capacity * this.shape.headDim;
  }
}
