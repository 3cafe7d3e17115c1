import { Dim, type DimLike } from "../../graph/dim.js";
import type { Graph } from "../../graph/graph.js";
import {
  add,
  causalConvolution,
  chunkedScan,
  dimAt,
  gatherRows,
  reshape,
  scatterRows,
  split,
  transpose,
} from "../../graph/ops/index.js";
import type { Tensor } from "../../graph/tensor.js";
import type { Recurrence, ScanRows, ScanSizes, StatePart } from "../../model/mixers/recurrence.js";
import { at } from "../../util/arrays.js";

/** Tokens that are read into a state at once; fewer take more programs' nodes, more take more memory. */
export const scanChunk = 64;

/** States before and after a block of tokens, by the names of their feeds and results. */
export interface StateOfBlocks {
  readonly starts: Record<string, Tensor>;
  readonly ends: Record<string, Tensor>;
}

/** Name of a layer's state before a block of tokens. */
export function startName(part: string): string {
  return `start.${part}`;
}

/** Name of a layer's state after a block of tokens. */
export function endName(part: string): string {
  return `end.${part}`;
}

/** The arrangement of a graph's tokens in sequences. */
export interface RecurrentTokens {
  readonly graph: Graph;
  readonly tokens: Dim;
  readonly sequences: Dim;
  /** Of the longest sequence; all are padded at the end to as many. */
  readonly chunks: number;
  /** Prefix of the names of the layer's states. */
  readonly prefix: string;
  /** Collects states that are passed on; absent for whole sequences. */
  readonly states: StateOfBlocks | undefined;
}

/**
 * Convolutions and scans over whole packed sequences, each padded apart. Values beyond the end of a sequence are
 * read by later tokens only, of which there are none; so padding needs no care.
 */
export class TrainingRecurrence implements Recurrence {
  readonly #own: RecurrentTokens;
  readonly #slots: Tensor;

  constructor(own: RecurrentTokens) {
    const { graph, tokens } = own;
    this.#own = own;
    this.#slots = graph.inputs.get("slots") ?? graph.input("slots", [tokens], "int64");
  }

  convolve(value: Tensor, kernel: Tensor, bias?: Tensor): Tensor {
    const { sequences } = this.#own;
    const channels = dimAt(value, 1);
    const before = dimAt(kernel, 2).plus(-1);
    const start = this.#start("conv", [sequences, channels, before]);
    const padded = reshape(this.#spread(value), [sequences, this.#length, channels]);
    const turned = transpose(padded, [0, 2, 1]);
    this.#end("conv", () =>
      at(split(turned, 2, [Dim.of(this.#length).plus(before.times(-1)), before]), 1),
    );
    const result = transpose(causalConvolution(turned, kernel, start), [0, 2, 1]);
    const rows = this.#collect(reshape(result, [this.#slotCount, channels]));
    return bias === undefined ? rows : add(rows, bias);
  }

  scan(rows: ScanRows, { keyHeads, valueHeads, keyDim, valueDim }: ScanSizes): Tensor {
    const { sequences, chunks } = this.#own;
    const group = valueHeads / keyHeads;
    const heads = sequences.times(keyHeads);
    const stack = (value: Tensor, count: number, width: number): Tensor => {
      const parts = [sequences, chunks, scanChunk, keyHeads, count, width];
      const swapped = transpose(reshape(this.#spread(value), parts), [1, 0, 3, 4, 2, 5]);
      return reshape(swapped, [chunks, heads, count, scanChunk, width]);
    };
    const state = this.#start("scan", [1, heads, group, keyDim, valueDim]);
    const { result, state: end } = chunkedScan({
      query: stack(rows.query, 1, keyDim),
      key: stack(rows.key, 1, keyDim),
      value: stack(rows.value, group, valueDim),
      decay: stack(rows.decay, group, 1),
      ...(rows.strength === undefined ? {} : { strength: stack(rows.strength, group, 1) }),
      ...(state === undefined ? {} : { state }),
    });
    this.#end("scan", () => end);
    const parts = [chunks, sequences, keyHeads, group, scanChunk, valueDim];
    const swapped = transpose(reshape(result, parts), [1, 0, 4, 2, 3, 5]);
    return this.#collect(reshape(swapped, [this.#slotCount, valueHeads * valueDim]));
  }

  get #length(): number {
    return this.#own.chunks * scanChunk;
  }

  get #slotCount(): Dim {
    return this.#own.sequences.times(this.#length);
  }

  #spread(rows: Tensor): Tensor {
    return scatterRows(rows, this.#slots, this.#slotCount);
  }

  #collect(slots: Tensor): Tensor {
    return gatherRows(slots, this.#slots);
  }

  #start(part: StatePart, shape: readonly DimLike[]): Tensor | undefined {
    const { graph, prefix, states } = this.#own;
    if (states === undefined) return undefined;
    const name = `${prefix}${startName(part)}`;
    const start = graph.input(name, shape);
    states.starts[name] = start;
    return start;
  }

  #end(part: StatePart, make: () => Tensor): void {
    const { prefix, states } = this.#own;
    if (states !== undefined) states.ends[`${prefix}${endName(part)}`] = make();
  }
}
