import type { CopiedHead, KvArray, KvMemory } from "./kv-memory.js";

/** Sizes of a model's cache per sequence: keys and values of every token, and states of one size. */
export interface KvShape {
  /** Layers that have attention. */
  readonly layers: number;
  readonly kvHeads: number;
  readonly headWidth: number;
  /** Tokens that each layer sees, null for all. @default all, in every layer */
  readonly windows?: readonly (number | null)[];
  /** Lengths of the states of one sequence, in the order of layers. @default none */
  readonly states?: readonly number[];
}

/** Bytes that the states of one sequence take. */
export function stateBytes({ states = [] }: KvShape): number {
  return 4 * states.reduce((sum, length) => sum + length, 0);
}

/** Bytes that keys and values of one token take. */
export function kvBytesPerToken({ layers, kvHeads, headWidth }: KvShape): number {
  return layers * 2 * kvHeads * headWidth * 4;
}

/**
 * Cached keys and values of several sequences, laid out as the decoder reads them: per layer
 * [rows, kvHeads, places, headWidth], used rows first. Places without a token hold anything.
 *
 * A layer with a window has places for the tokens it sees: older ones are removed in steps. In memory of a
 * device, where tokens cannot be moved within an array, every layer keeps all of them.
 */
export class KvRows {
  readonly shape: KvShape;
  readonly capacity: number;
  readonly rowCapacity: number;
  /** Keys of every layer, then values, then states. */
  readonly #arrays: readonly KvArray[];
  /** Arrays to return to their pool. */
  readonly #taken: readonly KvArray[];
  readonly #lengths: Int32Array;
  readonly #memory: KvMemory | undefined;
  /** Of every layer; null where all tokens are kept. */
  readonly #windows: readonly (number | null)[];

  /** The memory comes from `memory` and is returned by `release`; without one it is the processor's. */
  constructor(shape: KvShape, capacity: number, rowCapacity: number, memory?: KvMemory) {
    this.shape = shape;
    this.capacity = capacity;
    this.rowCapacity = rowCapacity;
    this.#lengths = new Int32Array(rowCapacity);
    this.#memory = memory;
    const isOnDevice = memory?.copy !== undefined;
    const windows = isOnDevice ? [] : (shape.windows ?? []);
    this.#windows = Array.from({ length: shape.layers }, (_, layer) => windows[layer] ?? null);
    const sizes = [
      ...[...this.#windows, ...this.#windows].map((window) => rowCapacity * this.#rowSize(window)),
      ...(shape.states ?? []).map((length) => rowCapacity * length),
    ];
    if (isOnDevice) {
      this.#arrays = sizes.map((size) => memory.take(size));
      this.#taken = this.#arrays;
      return;
    }
    // One array, not one per layer: the system hands out large allocations page by page, so that places that no
    // token ever uses cost nothing. The C library would take smaller ones from freed memory, and clear them.
    const length = sizes.reduce((sum, size) => sum + size, 0);
    const whole = memory?.take(length) ?? new Float32Array(length);
    if (!(whole instanceof Float32Array)) throw new Error("the cache lies on a device");
    let end = 0;
    this.#arrays = sizes.map((size) => whole.subarray(end, (end += size)));
    this.#taken = [whole];
  }

  /** Returns the memory; the store must not be used any more. */
  release(): void {
    this.#memory?.giveBack(...this.#taken);
  }

  /** Bytes of all rows. */
  get bytes(): number {
    return this.#arrays.reduce((sum, { length }) => sum + 4 * length, 0);
  }

  /** Whether rows have states; a row of tokens only has none. */
  get hasStates(): boolean {
    return (this.shape.states ?? []).length > 0;
  }

  /** Tokens in a row. */
  length(row: number): number {
    return this.#lengths[row] ?? 0;
  }

  /** Keys of the first `rows` rows. */
  keys(layer: number, rows: number): KvArray {
    return this.#firstRows("keys", layer, rows);
  }

  /** Values of the first `rows` rows. */
  values(layer: number, rows: number): KvArray {
    return this.#firstRows("values", layer, rows);
  }

  /** A state of the first `rows` rows. */
  state(index: number, rows: number): Float32Array {
    const [length, array] = [
      this.shape.states?.[index],
      this.#arrays[2 * this.shape.layers + index],
    ];
    if (length === undefined || !(array instanceof Float32Array)) {
      throw new RangeError(`no state ${index}`);
    }
    return array.subarray(0, rows * length);
  }

  /** Copies the states of a row of this or another store to a row. */
  copyStates(source: KvRows, from: number, row: number): void {
    for (const [index, length] of (this.shape.states ?? []).entries()) {
      const input = source.state(index, from + 1).subarray(from * length);
      this.state(index, row + 1).set(input, row * length);
    }
  }

  /** Places for tokens that a row has in layers of a window. */
  places(window: number | null): number {
    return windowPlaces(this.#kept(window), this.capacity);
  }

  /** Tokens of a row that have left the caches of a window. */
  left(window: number | null, row: number): number {
    return heldFrom(this.length(row), this.#kept(window));
  }

  /** Tokens in each of the first `rows` rows. */
  lengths(rows: number): Int32Array {
    return this.#lengths.subarray(0, rows);
  }

  /** Counts tokens that were written behind those of a row. */
  extend(row: number, count: number): void {
    const [length, end] = [this.length(row), this.#endAfter(row, count)];
    for (const [layer, window] of this.#windows.entries()) {
      const [first, next] = [heldFrom(length, window), heldFrom(end, window)];
      if (next > first) this.#move(layer, row, next - first, end - next);
    }
    this.#lengths[row] = end;
  }

  /** Empties a row. */
  clear(row: number): void {
    this.#lengths[row] = 0;
    for (const [index, length] of (this.shape.states ?? []).entries()) {
      this.state(index, row + 1).fill(0, row * length);
    }
  }

  /** Appends tokens of a row of this or another store to a row; its states stay as they are. */
  appendFrom(source: KvRows, from: number, start: number, count: number, row: number): void {
    const length = this.length(row);
    const end = this.#endAfter(row, count);
    for (const [layer, window] of this.#windows.entries()) {
      const [first, next] = [heldFrom(length, window), heldFrom(end, window)];
      if (next > first && length > next) this.#move(layer, row, next - first, length - next);
      // The new tokens that are within the window of the last one.
      const skipped = Math.max(0, next - length);
      const held = start + skipped - source.left(window, from);
      if (held < 0) throw new RangeError("tokens that have left a window cannot be copied");
      const place = { from: held, to: length + skipped - next };
      this.#copy(source, layer, { from, to: row }, place, count - skipped);
    }
    this.#lengths[row] = end;
  }

  /** Copies a row of this or another store to a row. */
  copyRow(source: KvRows, from: number, row: number): void {
    this.#lengths[row] = 0;
    this.appendFrom(source, from, 0, source.length(from), row);
    this.copyStates(source, from, row);
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

  /** Copies tokens from some place on to some place of a row. */
  #copy(source: KvRows, layer: number, row: CopiedHead, place: CopiedHead, count: number): void {
    const { kvHeads, headWidth } = this.shape;
    const heads = Array.from({ length: kvHeads }, (_, head) => ({
      from: (row.from * kvHeads + head) * source.#layerPlaces(layer) + place.from,
      to: (row.to * kvHeads + head) * this.#layerPlaces(layer) + place.to,
    }));
    // Only the device's memory can copy its own arrays.
    const memory = this.#memory?.copy === undefined ? source.#memory : this.#memory;
    for (const kind of ["keys", "values"] as const) {
      const [input, output] = [source.#of(kind, layer), this.#of(kind, layer)];
      if (input instanceof Float32Array && output instanceof Float32Array) {
        for (const { from, to } of heads) {
          const part = input.subarray(from * headWidth, (from + count) * headWidth);
          output.set(part, to * headWidth);
        }
      } else {
        memory?.copy?.(input, output, heads, count, headWidth);
      }
    }
  }

  /** Drops the first tokens of a row from the caches of a layer; `count` stay. */
  #move(layer: number, row: number, gone: number, count: number): void {
    this.#copy(this, layer, { from: row, to: row }, { from: gone, to: 0 }, count);
  }

  /** The window's size in this store. */
  #kept(window: number | null): number | null {
    return this.#windows.includes(window) ? window : null;
  }

  #layerPlaces(layer: number): number {
    return windowPlaces(this.#windows[layer] ?? null, this.capacity);
  }

  #of(kind: "keys" | "values", layer: number): KvArray {
    const { layers } = this.shape;
    const array =
      layer < layers ? this.#arrays[kind === "keys" ? layer : layers + layer] : undefined;
    if (array === undefined) throw new RangeError(`no layer ${layer}`);
    return array;
  }

  /** Arrays of a device are not divided: programs read the beginning. */
  #firstRows(kind: "keys" | "values", layer: number, rows: number): KvArray {
    const array = this.#of(kind, layer);
    if (!(array instanceof Float32Array)) return array;
    return array.subarray(0, rows * this.#rowSize(this.#windows[layer] ?? null));
  }

  #rowSize(window: number | null): number {
    return this.shape.kvHeads * windowPlaces(window, this.capacity) * this.shape.headWidth;
  }
}

/** Caches of windows move on by so many tokens at a time: a block of a prompt. */
const stride = 64;

/**
 * The first token of a sequence that the cache of a window still holds. It depends on the length of the sequence
 * alone: the position of tokens affects rounding, and other sequences must not.
 */
function heldFrom(length: number, window: number | null): number {
  if (window === null) return 0;
  return Math.floor(Math.max(0, length - window) / stride) * stride;
}

/** Places for tokens that the cache of a window needs: the held ones, and a block of new ones. */
function windowPlaces(window: number | null, capacity: number): number {
  return window === null ? capacity : Math.min(capacity, window + 2 * stride);
}
