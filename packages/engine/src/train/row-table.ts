import { at } from "../util/at.js";
import type { PreparedDatum } from "./datum.js";

/**
 * What the loss reads and writes for the rows of a micro-batch, in packed order.
 *
 * Data may differ in their number of targets per row: the table has room for the most, and the spare
 * places of other rows hold token 0 with zero inputs, which adds nothing to the loss.
 */
export class RowTable {
  readonly targetsPerRow: number;
  readonly rowCount: number;
  readonly #data: readonly PreparedDatum[];
  readonly #targets: Int32Array;
  readonly #lossFeeds: Readonly<Record<string, Float32Array>>;
  readonly #active: Uint8Array;
  readonly #logprobs: Float32Array;
  readonly #terms: Float32Array;

  constructor(data: readonly PreparedDatum[]) {
    this.#data = data;
    this.rowCount = data.reduce((sum, datum) => sum + datum.tokens.length, 0);
    this.targetsPerRow = Math.max(...data.map((datum) => datum.targetsPerRow));
    const places = this.rowCount * this.targetsPerRow;
    this.#targets = new Int32Array(places);
    this.#logprobs = new Float32Array(places);
    this.#terms = new Float32Array(places);
    this.#active = new Uint8Array(this.rowCount);
    const feeds: Record<string, Float32Array> = {};
    let row = 0;
    for (const datum of data) {
      this.#active.set(datum.activeRows, row);
      this.#spread(datum, row, datum.targets, this.#targets);
      const inputs = [
        ...Object.entries(datum.inputs).map(([name, values]) => [`loss.${name}`, values] as const),
        ...Object.entries(datum.settings).map(
          ([name, values]) => [`setting.${name}`, values] as const,
        ),
      ];
      for (const [name, values] of inputs) {
        this.#spread(datum, row, values, (feeds[name] ??= new Float32Array(places)));
      }
      row += datum.tokens.length;
    }
    this.#lossFeeds = feeds;
  }

  allRows(): Int32Array {
    return Int32Array.from({ length: this.rowCount }, (_, row) => row);
  }

  activeRows(): Int32Array {
    return this.allRows().filter((row) => this.#active[row] === 1);
  }

  inactiveRows(): Int32Array {
    return this.allRows().filter((row) => this.#active[row] === 0);
  }

  targetsOf(rows: Int32Array): Int32Array {
    return this.#select(rows, this.#targets, new Int32Array(rows.length * this.targetsPerRow));
  }

  /** Inputs and settings of the loss for some rows, by the names of the graphs. */
  lossFeeds(rows: Int32Array): Record<string, Float32Array> {
    const feeds: Record<string, Float32Array> = {};
    for (const [name, values] of Object.entries(this.#lossFeeds)) {
      feeds[name] = this.#select(rows, values, this.results(rows.length));
    }
    return feeds;
  }

  /** An array for one number per target of some rows. */
  results(rows: number): Float32Array {
    return new Float32Array(rows * this.targetsPerRow);
  }

  /** Keeps log-probabilities and loss terms of some rows; rows without terms add nothing. */
  store(rows: Int32Array, logprobs: Float32Array, terms?: Float32Array): void {
    const width = this.targetsPerRow;
    for (const [index, row] of rows.entries()) {
      const [start, end] = [index * width, (index + 1) * width];
      this.#logprobs.set(logprobs.subarray(start, end), row * width);
      if (terms !== undefined) this.#terms.set(terms.subarray(start, end), row * width);
    }
  }

  /** Log-probabilities and loss terms of each datum, in the shape of its targets. */
  *byDatum(): Iterable<{ readonly logprobs: Float32Array; readonly terms: Float32Array }> {
    let row = 0;
    for (const datum of this.#data) {
      yield {
        logprobs: this.#gatherBack(datum, row, this.#logprobs),
        terms: this.#gatherBack(datum, row, this.#terms),
      };
      row += datum.tokens.length;
    }
  }

  #spread<T extends Int32Array | Float32Array>(
    datum: PreparedDatum,
    firstRow: number,
    values: T,
    target: T,
  ): void {
    const own = datum.targetsPerRow;
    for (let i = 0; i < values.length; i++) {
      const row = firstRow + Math.floor(i / own);
      target[row * this.targetsPerRow + (i % own)] = at(values, i);
    }
  }

  #gatherBack(datum: PreparedDatum, firstRow: number, values: Float32Array): Float32Array {
    const own = datum.targetsPerRow;
    return Float32Array.from(datum.targets, (_, i) => {
      const row = firstRow + Math.floor(i / own);
      return at(values, row * this.targetsPerRow + (i % own));
    });
  }

  #select<T extends Int32Array | Float32Array>(rows: Int32Array, values: T, target: T): T {
    const width = this.targetsPerRow;
    for (const [index, row] of rows.entries()) {
      target.set(values.subarray(row * width, (row + 1) * width), index * width);
    }
    return target;
  }
}
