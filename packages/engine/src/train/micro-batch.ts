import { at } from "../util/at.js";
import { arrange, type LongArrangement, type ShortArrangement } from "./arrangement.js";
import type { PreparedDatum } from "./datum.js";
import type { TrainingBudget } from "./training-budget.js";

/** Data that pass through the model together, packed one after the other without padding. */
export interface MicroBatch {
  /** Indices of the data in their call, in packed order. */
  readonly members: readonly number[];
  readonly tokens: Int32Array;
  /** Of the members. */
  readonly lengths: readonly number[];
  readonly arrangement: ShortArrangement | LongArrangement;
}

/**
 * Divides data into micro-batches of at most `microBatchTokens` tokens; long data get one of their own.
 *
 * Data are taken by length, so that members are alike and padding inside attention stays small. The
 * division depends on the lengths alone: the same call always gives the same batches, bit for bit.
 */
export function planMicroBatches(
  data: readonly PreparedDatum[],
  { microBatchTokens, wholeTokens }: TrainingBudget,
): readonly (readonly number[])[] {
  const byLength = data
    .map((datum, index) => ({ index, length: datum.tokens.length }))
    .toSorted((a, b) => b.length - a.length || a.index - b.index);
  const batches: number[][] = [];
  let room = 0;
  for (const { index, length } of byLength) {
    if (length > room) {
      batches.push([]);
      room = microBatchTokens;
    }
    at(batches, batches.length - 1).push(index);
    room = length > wholeTokens ? 0 : room - length;
  }
  return batches;
}

/** Packs the members of a micro-batch. */
export function packMicroBatch(
  data: readonly PreparedDatum[],
  members: readonly number[],
  heads: number,
  kvHeads: number,
  { wholeTokens, blockTokens, hasStates = false }: TrainingBudget,
): MicroBatch {
  const sequences = members.map((index) => at(data, index).tokens);
  const lengths = sequences.map((tokens) => tokens.length);
  const total = lengths.reduce((sum, length) => sum + length, 0);
  const tokens = new Int32Array(total);
  let offset = 0;
  for (const sequence of sequences) {
    tokens.set(sequence, offset);
    offset += sequence.length;
  }
  return {
    members,
    tokens,
    lengths,
    arrangement: arrange(lengths, heads, kvHeads, wholeTokens, blockTokens, hasStates),
  };
}
