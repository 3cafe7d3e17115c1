import type { BufferPool } from "../runtime/buffer-pool.js";
import { addInto } from "./add-into.js";
import type { AttentionRun } from "./attention-plan.js";
import { gradientName } from "./graphs/trained.js";
import type { TrainingPrograms } from "./training-programs.js";

/** Packed queries, keys and values of a layer. */
export interface AttentionValues {
  readonly query: Float32Array;
  readonly key: Float32Array;
  readonly value: Float32Array;
}

/** Widths of the packed rows. */
export interface AttentionWidths {
  readonly query: number;
  readonly key: number;
}

/** Runs a layer's attention as planned, on views of the packed arrays. */
export class AttentionRunner {
  readonly #widths: AttentionWidths;
  readonly #programs: TrainingPrograms;
  readonly #pool: BufferPool;

  constructor(widths: AttentionWidths, programs: TrainingPrograms, pool: BufferPool) {
    this.#widths = widths;
    this.#programs = programs;
    this.#pool = pool;
  }

  async forward(
    runs: readonly AttentionRun[],
    values: AttentionValues,
    attended: Float32Array,
    pause: () => Promise<void>,
  ): Promise<void> {
    const program = await this.#programs.attentionForward();
    for (const run of runs) {
      await pause();
      const { query, key, value } = this.#operands(run, values);
      await program.run(
        { ...run.feeds, query, key, value },
        { attended: this.#queryRows(run, attended) },
        run.sizes,
      );
    }
  }

  /** Writes the gradients of queries, keys and values. */
  async backward(
    runs: readonly AttentionRun[],
    values: AttentionValues & { readonly attended: Float32Array },
    gradientOfAttended: Float32Array,
    gradients: AttentionValues,
    pause: () => Promise<void>,
  ): Promise<void> {
    const program = await this.#programs.attentionBackward();
    let lastKeyStart = -1;
    for (const run of runs) {
      await pause();
      const feeds = {
        ...run.feeds,
        ...this.#operands(run, values),
        attended: this.#queryRows(run, values.attended),
        [gradientName("attended")]: this.#queryRows(run, gradientOfAttended),
      };
      const query = this.#queryRows(run, gradients.query);
      const [key, value] = [this.#keyRows(run, gradients.key), this.#keyRows(run, gradients.value)];
      const first = run.keyStart !== lastKeyStart;
      lastKeyStart = run.keyStart;
      const keyPart = first ? key : this.#pool.take(key.length);
      const valuePart = first ? value : this.#pool.take(value.length);
      const results = {
        [gradientName("query")]: query,
        [gradientName("key")]: keyPart,
        [gradientName("value")]: valuePart,
      };
      await program.run(feeds, results, run.sizes);
      if (!first) {
        addInto(key, keyPart);
        addInto(value, valuePart);
        this.#pool.giveBack(keyPart, valuePart);
      }
    }
  }

  #operands(run: AttentionRun, values: AttentionValues): AttentionValues {
    return {
      query: this.#queryRows(run, values.query),
      key: this.#keyRows(run, values.key),
      value: this.#keyRows(run, values.value),
    };
  }

  #queryRows(run: AttentionRun, array: Float32Array): Float32Array {
    return rows(array, this.#widths.query, run.queryStart, run.queryEnd);
  }

  #keyRows(run: AttentionRun, array: Float32Array): Float32Array {
    return rows(array, this.#widths.key, run.keyStart, run.keyEnd);
  }
}

function rows(array: Float32Array, width: number, start: number, end: number): Float32Array {
  return array.subarray(start * width, end * width);
}
