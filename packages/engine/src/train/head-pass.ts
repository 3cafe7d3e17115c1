import type { ModelConfig } from "../model/model-config.js";
import type { FedWeights } from "../model/model-weights.js";
import type { ValueMemory, Values } from "../execution/device-array.js";
import type { PortValues } from "../execution/program.js";
import { at, int64From } from "../util/arrays.js";
import type { GradientSum } from "./gradient-sum.js";
import { gradientName } from "./graphs/trained.js";
import type { LossName } from "./losses.js";
import type { TrainingPrograms } from "./training-programs.js";
import type { PreparedDatum } from "./datum.js";

/** One pass over the unembedding. */
export interface HeadPass {
  readonly loss: LossName;
  readonly rank: number;
  readonly feeds: PortValues;
  readonly pause: () => Promise<void>;
}

/**
 * Memory that the logits of one chunk of rows may take, with room for their gradient. Twice as much makes no
 * step faster, and a process of 0.6 billion parameters 0.2 GB larger.
 */
const chunkBytes = 96 << 20;
const arraysPerLogit = 3;
const maxChunkRows = 2048;

/** Number of rows with logits in memory at once. */
export function headChunkRows(vocabSize: number): number {
  const perChunk = chunkBytes / (vocabSize * 4 * arraysPerLogit);
  return Math.max(1, Math.min(maxChunkRows, Math.floor(perChunk)));
}

/**
 * Log-probabilities, loss terms and gradients from the last hidden states, in chunks of rows, so that
 * the logits of a large vocabulary never exist as a whole.
 *
 * Every row gets its log-probability. The backward product, twice the work, runs for rows that have a
 * gradient only: those are gathered, and their gradients scattered back.
 */
export class HeadRunner<V extends Values> {
  readonly #config: ModelConfig;
  readonly #weights: FedWeights;
  readonly #programs: TrainingPrograms;
  readonly #pool: ValueMemory<V>;

  constructor(
    config: ModelConfig,
    weights: FedWeights,
    programs: TrainingPrograms,
    pool: ValueMemory<V>,
  ) {
    this.#config = config;
    this.#weights = weights;
    this.#programs = programs;
    this.#pool = pool;
  }

  /** Fills the table's log-probabilities and loss terms. */
  async forward(pass: HeadPass, hidden: V, table: RowTable): Promise<void> {
    const program = await this.#programs.headLoss(pass.loss);
    for (const rows of this.#chunks(table.allRows())) {
      await pass.pause();
      const input = await this.#gather(hidden, rows);
      const results = { logprobs: table.results(rows.length), terms: table.results(rows.length) };
      await program.run(
        this.#feeds(pass, input, table, rows),
        results,
        this.#sizes(pass, table, rows),
      );
      table.store(rows, results.logprobs, results.terms);
      this.#pool.giveBack(input);
    }
  }

  /** Like `forward`, and also adds gradients; returns that of the hidden states if it is wanted. */
  async backward(
    pass: HeadPass,
    hidden: V,
    table: RowTable,
    gradients: GradientSum,
    inputGradient: boolean,
  ): Promise<V | undefined> {
    await this.#scoreInactive(pass, hidden, table);
    const active = table.activeRows();
    if (active.length === 0) return undefined;
    const program = await this.#programs.headBackward(pass.loss, inputGradient);
    const ofHidden = inputGradient ? await this.#pool.take(hidden.length) : undefined;
    if (ofHidden !== undefined) await this.#pool.clear(ofHidden);
    const hiddenName = gradientName("hidden");
    for (const rows of this.#chunks(active)) {
      await pass.pause();
      const input = await this.#gather(hidden, rows);
      const ofInput = await this.#pool.take(input.length);
      const results = { logprobs: table.results(rows.length), terms: table.results(rows.length) };
      const sizes = this.#sizes(pass, table, rows);
      const own = new Set(["logprobs", "terms", hiddenName]);
      const targets = [...program.resultLengths(sizes).keys()]
        .filter((result) => !own.has(result))
        .map((result) => ({
          result,
          place: "outer" as const,
          feed: result.slice(gradientName("").length),
        }));
      await gradients.collect(targets, (sums) =>
        program.run(
          this.#feeds(pass, input, table, rows),
          { ...results, ...sums, ...(inputGradient ? { [hiddenName]: ofInput } : {}) },
          sizes,
        ),
      );
      table.store(rows, results.logprobs, results.terms);
      if (ofHidden !== undefined) await this.#scatter(ofHidden, rows, ofInput);
      this.#pool.giveBack(input, ofInput);
    }
    return ofHidden;
  }

  async #scoreInactive(pass: HeadPass, hidden: V, table: RowTable): Promise<void> {
    const inactive = table.inactiveRows();
    if (inactive.length === 0) return;
    const program = await this.#programs.headForward();
    for (const rows of this.#chunks(inactive)) {
      await pass.pause();
      const input = await this.#gather(hidden, rows);
      const logprobs = table.results(rows.length);
      await program.run(
        this.#feeds(pass, input, table, rows),
        { logprobs },
        this.#sizes(pass, table, rows),
      );
      table.store(rows, logprobs);
      this.#pool.giveBack(input);
    }
  }

  *#chunks(rows: Int32Array): Iterable<Int32Array> {
    const step = headChunkRows(this.#config.vocabSize);
    for (let start = 0; start < rows.length; start += step)
      yield rows.subarray(start, start + step);
  }

  #feeds(pass: HeadPass, hidden: V, table: RowTable, rows: Int32Array): PortValues {
    return {
      ...this.#weights.outer,
      ...pass.feeds,
      hidden,
      targets: int64From(table.targetsOf(rows)),
      ...table.lossFeeds(rows),
    };
  }

  #sizes(pass: HeadPass, table: RowTable, rows: Int32Array) {
    return { rows: rows.length, targetsPerRow: table.targetsPerRow, rank: pass.rank };
  }

  async #gather(hidden: V, rows: Int32Array): Promise<V> {
    const width = this.#config.hiddenSize;
    const gathered = await this.#pool.take(rows.length * width);
    await this.#pool.copyRows(hidden, rows, gathered, [...rows.keys()], width);
    return gathered;
  }

  async #scatter(target: V, rows: Int32Array, gathered: V): Promise<void> {
    await this.#pool.copyRows(gathered, [...rows.keys()], target, rows, this.#config.hiddenSize);
  }
}

/**
 * Inputs and outputs of the loss for the rows of a micro-batch, in packed order.
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
