import type { PortValues } from "../execution/program.js";
import { at, int64From } from "../util/arrays.js";
import { scanChunk } from "./graphs/training-recurrence.js";
import type { PreparedDatum } from "./datum.js";
import type { TrainingBudget } from "./training-budget.js";

/** Feeds and sizes that describe to a graph how packed tokens are arranged for attention. */
interface ArrangementFeeds {
  readonly feeds: PortValues;
  readonly sizes: Readonly<Record<string, number>>;
}

/** Short sequences with joint attention. */
export interface ShortArrangement extends ArrangementFeeds {
  readonly kind: "short";
  /** Chunks of the longest sequence, where layers have states. */
  readonly chunks: number;
  readonly layout: "dense" | "padded";
}

/** A block of queries of a long sequence and the keys that it sees, up to its end; rows are tokens. */
export interface AttentionBlock extends ArrangementFeeds {
  readonly queryStart: number;
  readonly queryEnd: number;
  readonly keyStart: number;
}

/** One long sequence with attention in blocks. */
export interface LongArrangement {
  readonly kind: "long";
  readonly length: number;
  /** The blocks of layers with a window of this size. */
  blocks(window: number | null): readonly AttentionBlock[];
}

/**
 * Decides how the attention of packed sequences runs.
 *
 * Sequences of up to `wholeTokens` tokens run together, padded at the end to the longest; the causal mask
 * alone keeps padding invisible. A longer sequence runs in blocks of `blockTokens` queries against the keys
 * from the first one's window to the block's end, which bounds memory and skips the scores that lie in the
 * future or outside all windows. The last block comes first: without windows it sees every key, so that
 * gradients of the others are added to complete ones.
 */
export function arrange(
  lengths: readonly number[],
  heads: number,
  kvHeads: number,
  wholeTokens: number,
  blockTokens: number,
  hasStates = false,
): ShortArrangement | LongArrangement {
  const longest = Math.max(...lengths);
  if (longest > wholeTokens) {
    if (lengths.length > 1) throw new Error("a long sequence needs a micro-batch of its own");
    const known = new Map<number | null, readonly AttentionBlock[]>();
    const blocks = (window: number | null): readonly AttentionBlock[] => {
      const made = known.get(window) ?? blocksOf(longest, blockTokens, window);
      known.set(window, made);
      return made;
    };
    return { kind: "long", length: longest, blocks };
  }
  const positions = range(0, longest);
  const chunks = Math.ceil(longest / scanChunk);
  const feeds = {
    queryPositions: positions,
    keyPositions: positions,
    ...(hasStates ? { slots: slotsOf(lengths, 1, chunks * scanChunk) } : {}),
  };
  const sizes = { sequences: lengths.length, queries: longest, keys: longest };
  if (lengths.every((length) => length === longest)) {
    return { kind: "short", layout: "dense", chunks, feeds, sizes };
  }
  const slots: Record<string, BigInt64Array> = {};
  for (const count of new Set([heads, kvHeads]))
    slots[`slots.${count}`] = slotsOf(lengths, count, longest);
  return { kind: "short", layout: "padded", chunks, feeds: { ...feeds, ...slots }, sizes };
}

function blocksOf(
  length: number,
  blockTokens: number,
  window: number | null,
): readonly AttentionBlock[] {
  const blocks: AttentionBlock[] = [];
  for (let block = Math.floor((length - 1) / blockTokens); block >= 0; block--) {
    const queryStart = block * blockTokens;
    const queryEnd = Math.min(length, queryStart + blockTokens);
    const keyStart = window === null ? 0 : Math.max(0, queryStart - window + 1);
    blocks.push({
      queryStart,
      queryEnd,
      keyStart,
      feeds: {
        queryPositions: range(queryStart, queryEnd),
        keyPositions: range(keyStart, queryEnd),
      },
      sizes: { sequences: 1, queries: queryEnd - queryStart, keys: queryEnd - keyStart },
    });
  }
  return blocks;
}

/** For every token and head, in packed order, its place in [sequences, heads, padded length]. */
export function slotsOf(
  lengths: readonly number[],
  heads: number,
  paddedLength: number,
): BigInt64Array {
  const places: number[] = [];
  for (const [sequence, length] of lengths.entries()) {
    for (let token = 0; token < length; token++) {
      for (let head = 0; head < heads; head++) {
        places.push((sequence * heads + head) * paddedLength + token);
      }
    }
  }
  return int64From(places);
}

function range(from: number, to: number): BigInt64Array {
  return int64From(Array.from({ length: to - from }, (_, index) => from + index));
}

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
