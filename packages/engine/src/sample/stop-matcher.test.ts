import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StopMatcher } from "./stop-matcher.js";

/** Tokens that are the bytes of a text, cut anywhere, also inside characters. */
function tokensOf(text: string, cuts: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const places = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])];
  const sorted = places.toSorted((a, b) => a - b);
  return sorted.slice(1).map((end, index) => bytes.slice(sorted[index], end));
}

const texts = fc.string({ unit: fc.constantFrom("a", "b", "é", "🙂"), maxLength: 12 });

describe("StopMatcher", () => {
  it("finds a string as soon as the text contains it, across tokens", () => {
    const stops = texts.filter((text) => text.length > 0);
    fc.assert(
      fc.property(
        texts,
        fc.array(stops, { minLength: 1, maxLength: 3 }),
        fc.array(fc.nat()),
        (text, strings, cuts) => {
          const tokens = tokensOf(text, cuts);
          const matcher = new StopMatcher(strings, {
            bytesOf: (token) => tokens[token] ?? new Uint8Array(),
          });
          let seen = Buffer.alloc(0);
          for (const [token, bytes] of tokens.entries()) {
            seen = Buffer.concat([seen, bytes]);
            const contained = strings.some((string) => seen.includes(Buffer.from(string)));
            expect(matcher.push(token)).toBe(contained);
            if (contained) return;
          }
        },
      ),
    );
  });
});
