import type { ModelConfig } from "../model/model-config.js";
import type { FedWeights } from "../model/model-weights.js";
import type { ValueMemory, Values } from "../execution/device-array.js";
import type { PortValues } from "../execution/program.js";
import { int64From } from "../util/int64.js";
import type { GradientSum } from "./gradient-sum.js";
import { gradientName } from "./graphs/gradients.js";
import type { LossName } from "./losses.js";
import type { RowTable } from "./row-table.js";
import type { TrainingPrograms } from "./training-programs.js";

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

/** Rows whose logits exist at once. */
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
