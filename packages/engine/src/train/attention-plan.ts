import { int64From } from "../util/int64.js";

/** Consecutive sequences of a batch whose attention is one run. */
export interface AttentionGroup {
  /** First packed row. */
  readonly start: number;
  readonly lengths: readonly number[];
}

/** Feeds of one run of packed attention, and the packed rows it reads. */
export interface AttentionRun {
  readonly queryStart: number;
  readonly queryEnd: number;
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly feeds: {
    readonly querySlots: BigInt64Array;
    readonly keySlots: BigInt64Array;
    readonly queryPositions: BigInt64Array;
    readonly keyPositions: BigInt64Array;
  };
  readonly sizes: {
    readonly tokens: number;
    readonly keyTokens: number;
    readonly sequences: number;
    readonly queries: number;
    readonly keys: number;
  };
}

/** Longest block of queries whose scores are computed at once. */
const blockLength = 512;

/** A shorter sequence joins a group while its length is at least this part of the longest. */
const groupFraction = 0.75;

/** Below this length padding costs less than another run. */
const smallLength = 64;

/**
 * Splits the attention of packed sequences into runs.
 *
 * Sequences of similar length are padded to the longest and run together: with right padding the causal
 * mask alone keeps padded keys invisible. Long sequences run in blocks of queries against the keys up to
 * the block's end, which bounds memory and skips the half of the scores that lie in the future. The last
 * block comes first: it sees every key, so gradients of later runs are added to complete ones.
 */
export function planAttention(
  lengths: readonly number[],
  heads: number,
  kvHeads: number,
): readonly AttentionRun[] {
  const runs: AttentionRun[] = [];
  for (const group of groupByLength(lengths)) {
    const [only] = group.lengths;
    if (group.lengths.length === 1 && only !== undefined && only > blockLength) {
      for (let start = Math.floor((only - 1) / blockLength); start >= 0; start--) {
        const from = start * blockLength;
        const to = Math.min(only, from + blockLength);
        runs.push(blockRun(group.start, from, to, heads, kvHeads));
      }
    } else {
      runs.push(groupRun(group, heads, kvHeads));
    }
  }
  return runs;
}

function groupByLength(lengths: readonly number[]): readonly AttentionGroup[] {
  const groups: { start: number; lengths: number[] }[] = [];
  let start = 0;
  for (const length of lengths) {
    const last = groups.at(-1);
    if (last !== undefined && joins(length, last.lengths)) last.lengths.push(length);
    else groups.push({ start, lengths: [length] });
    start += length;
  }
  return groups;
}

function joins(length: number, lengths: readonly number[]): boolean {
  const longest = Math.max(length, ...lengths);
  const shortest = Math.min(length, ...lengths);
  if (longest > blockLength) return false;
  return longest <= smallLength || shortest >= longest * groupFraction;
}

function groupRun(group: AttentionGroup, heads: number, kvHeads: number): AttentionRun {
  const { start, lengths } = group;
  const longest = Math.max(...lengths);
  const tokens = lengths.reduce((sum, length) => sum + length, 0);
  const positions = range(0, longest);
  return {
    queryStart: start,
    queryEnd: start + tokens,
    keyStart: start,
    keyEnd: start + tokens,
    feeds: {
      querySlots: slots(lengths, longest, heads),
      keySlots: slots(lengths, longest, kvHeads),
      queryPositions: positions,
      keyPositions: positions,
    },
    sizes: {
      tokens,
      keyTokens: tokens,
      sequences: lengths.length,
      queries: longest,
      keys: longest,
    },
  };
}

function blockRun(
  start: number,
  from: number,
  to: number,
  heads: number,
  kvHeads: number,
): AttentionRun {
  return {
    queryStart: start + from,
    queryEnd: start + to,
    keyStart: start,
    keyEnd: start + to,
    feeds: {
      querySlots: slots([to - from], to - from, heads),
      keySlots: slots([to], to, kvHeads),
      queryPositions: range(from, to),
      keyPositions: range(0, to),
    },
    sizes: { tokens: to - from, keyTokens: to, sequences: 1, queries: to - from, keys: to },
  };
}

/** For every token and head, in packed order, its place in [sequences, heads, padded length]. */
function slots(lengths: readonly number[], padded: number, heads: number): BigInt64Array {
  const places: number[] = [];
  for (const [sequence, length] of lengths.entries()) {
    for (let token = 0; token < length; token++) {
      for (let head = 0; head < heads; head++) {
        places.push((sequence * heads + head) * padded + token);
      }
    }
  }
  return int64From(places);
}

function range(from: number, to: number): BigInt64Array {
  return int64From(Array.from({ length: to - from }, (_, index) => from + index));
}
