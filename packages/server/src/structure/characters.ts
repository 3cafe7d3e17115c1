import type { GrammarBuilder, RuleId } from "./grammar-builder.js";

/** Characters from one code point to another. */
export type CharRange = readonly [first: number, last: number];

const lastCodePoint = 0x10ffff;
const surrogates: CharRange = [0xd800, 0xdfff];

/** The ranges in order, joined where they touch. */
export function normalized(ranges: readonly CharRange[]): CharRange[] {
  const result: [number, number][] = [];
  for (const [first, last] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = result.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else result.push([first, last]);
  }
  return result;
}

/** All characters that are in none of the ranges. */
export function complement(ranges: readonly CharRange[]): CharRange[] {
  const result: CharRange[] = [];
  let next = 0;
  for (const [first, last] of normalized(ranges)) {
    if (first > next) result.push([next, first - 1]);
    next = last + 1;
  }
  if (next <= lastCodePoint) result.push([next, lastCodePoint]);
  return result;
}

/** The intersection. */
export function intersection(a: readonly CharRange[], b: readonly CharRange[]): CharRange[] {
  return complement([...complement(a), ...complement(b)]);
}

/** One character of the ranges, in UTF-8. */
export function oneOf(builder: GrammarBuilder, ranges: readonly CharRange[]): RuleId {
  const parts = intersection(ranges, complement([surrogates])).flatMap((range) =>
    byLength(range).flatMap(([first, last]) => byteRanges(utf8(first), utf8(last))),
  );
  // Ranges that differ in their last byte only become one.
  const single = parts.filter((bytes) => bytes.length === 1).map(([range]) => range!);
  const several = parts.filter((bytes) => bytes.length > 1);
  return builder.choice(
    ...(single.length > 0 ? [builder.byte(...single)] : []),
    ...several.map((bytes) => builder.sequence(...bytes.map((range) => builder.byte(range)))),
  );
}

/** Splits a range where characters take one more byte. */
function byLength([first, last]: CharRange): CharRange[] {
  const cuts = [0x7f, 0x7ff, 0xffff, lastCodePoint];
  const result: CharRange[] = [];
  let from = first;
  for (const cut of cuts) {
    if (from > last) break;
    if (from > cut) continue;
    result.push([from, Math.min(last, cut)]);
    from = cut + 1;
  }
  return result;
}

function utf8(codePoint: number): readonly number[] {
  return [...Buffer.from(String.fromCodePoint(codePoint))];
}

/** Sequences of byte ranges that together are all bytes strings of one length between two of them. */
function byteRanges(first: readonly number[], last: readonly number[]): CharRange[][] {
  const [a = 0, ...firstRest] = first;
  const [b = 0, ...lastRest] = last;
  if (firstRest.length === 0) return [[[a, b]]];
  if (a === b) return byteRanges(firstRest, lastRest).map((rest) => [[a, a], ...rest]);
  const lowest = firstRest.map(() => 0x80);
  const highest = firstRest.map(() => 0xbf);
  const result: CharRange[][] = [];
  const isLowest = firstRest.every((byte) => byte === 0x80);
  const isHighest = lastRest.every((byte) => byte === 0xbf);
  const from = isLowest ? a : a + 1;
  const to = isHighest ? b : b - 1;
  if (!isLowest) {
    result.push(...byteRanges(firstRest, highest).map((rest): CharRange[] => [[a, a], ...rest]));
  }
  if (from <= to) {
    result.push([[from, to], ...firstRest.map((): CharRange => [0x80, 0xbf])]);
  }
  if (!isHighest) {
    result.push(...byteRanges(lowest, lastRest).map((rest): CharRange[] => [[b, b], ...rest]));
  }
  return result;
}
