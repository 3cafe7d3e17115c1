import type { Graph } from "../graph/graph.js";
import { cachedConvolution, cachedScan, dimAt, reshape, transpose } from "../graph/ops/index.js";
import type { Tensor } from "../graph/tensor.js";
import type { Recurrence, ScanRows, ScanSizes, StatePart } from "./mixers/recurrence.js";
import type { SequenceRows } from "./sampling-projector.js";

/** Name of a state that a layer reads. */
export function earlierState(part: StatePart): string {
  return `earlier.${part}`;
}

/** Name of an updated state. */
export function updatedState(part: StatePart): string {
  return `updated.${part}`;
}

/** Convolutions and scans of new tokens, with the states of the tokens before them; a layer has one of each at most. */
export class CachedRecurrence implements Recurrence {
  /** The updated states by the names of their results. */
  readonly outputs: Record<string, Tensor> = {};
  readonly #graph: Graph;
  readonly #rows: SequenceRows;
  readonly #prefix: string;

  /** `prefix` stands before the names of the layer's states. */
  constructor(graph: Graph, rows: SequenceRows, prefix: string) {
    this.#graph = graph;
    this.#rows = rows;
    this.#prefix = prefix;
  }

  convolve(value: Tensor, kernel: Tensor, bias?: Tensor): Tensor {
    const channels = dimAt(value, 1);
    const past = this.#state("conv", [
      channels.constant ?? 0,
      (dimAt(kernel, 2).constant ?? 0) - 1,
    ]);
    const turned = transpose(this.#bySequence(value), [0, 2, 1]);
    const { result, state } = cachedConvolution(turned, kernel, bias, past);
    this.#update("conv", state);
    return reshape(transpose(result, [0, 2, 1]), value.shape);
  }

  scan({ query, key, value, decay, strength }: ScanRows, sizes: ScanSizes): Tensor {
    const { valueHeads, keyDim, valueDim } = sizes;
    const { result, state } = cachedScan({
      query: this.#bySequence(query),
      key: this.#bySequence(key),
      value: this.#bySequence(value),
      decay: this.#bySequence(decay),
      strength: strength && this.#bySequence(strength),
      state: this.#state("scan", [valueHeads, keyDim, valueDim]),
    });
    this.#update("scan", state);
    return reshape(result, value.shape);
  }

  #bySequence(rows: Tensor): Tensor {
    const { sequences, newTokens } = this.#rows;
    return reshape(rows, [sequences, newTokens, dimAt(rows, 1)]);
  }

  #state(part: StatePart, shape: readonly number[]): Tensor {
    return this.#graph.input(`${this.#prefix}${earlierState(part)}`, [
      this.#rows.sequences,
      ...shape,
    ]);
  }

  #update(part: StatePart, state: Tensor): void {
    this.outputs[`${this.#prefix}${updatedState(part)}`] = state;
  }
}
