import type { GrammarBuilder, RuleId } from "./grammar-builder.js";

/** Any bytes up to and with the first occurrence of a mark. */
export function textUpTo(builder: GrammarBuilder, mark: string): RuleId {
  const bytes = Buffer.from(mark);
  // One rule per number of bytes of the mark that the text ends with.
  const places = Array.from(bytes, () => builder.reserve());
  for (const [matched, place] of places.entries()) {
    const byTarget = new Map<number, [number, number][]>();
    for (let byte = 0; byte < 256; byte++) {
      const target = matchedAfter(bytes, matched, byte);
      const ranges = byTarget.get(target) ?? [];
      const last = ranges.at(-1);
      if (last && last[1] === byte - 1) last[1] = byte;
      else ranges.push([byte, byte]);
      byTarget.set(target, ranges);
    }
    const ways = [...byTarget].map(([target, ranges]) => {
      const byte = builder.byte(...ranges);
      const next = places[target];
      return next === undefined ? byte : builder.sequence(byte, next);
    });
    builder.define(place, builder.choice(...ways));
  }
  return places[0]!;
}

/** How much of a mark a text ends with after one more byte. */
function matchedAfter(mark: Uint8Array, matched: number, byte: number): number {
  const text = [...mark.subarray(0, matched), byte];
  for (let length = Math.min(text.length, mark.length); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (tail.every((value, index) => value === mark[index])) return length;
  }
  return 0;
}
