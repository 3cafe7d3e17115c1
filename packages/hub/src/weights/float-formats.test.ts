import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFloats, encodeFloats } from "./float-formats.js";

function decodeWords(dtype: "F16" | "BF16", words: readonly number[]): Float32Array {
  const floats = new Float32Array(words.length);
  decodeFloats(dtype, Uint16Array.from(words).buffer, floats, words.length);
  return floats;
}

function encodeWords(dtype: "F16" | "BF16", values: readonly number[]): number[] {
  const bytes = encodeFloats(dtype, Float32Array.from(values));
  return [...new Uint16Array(bytes.buffer)];
}

/** The value of a 16-bit float by its definition, without any bit trick. */
function valueOf(word: number, exponentBits: number): number {
  const mantissaBits = 15 - exponentBits;
  const bias = 2 ** (exponentBits - 1) - 1;
  const exponent = (word >> mantissaBits) & (2 ** exponentBits - 1);
  const fraction = (word & (2 ** mantissaBits - 1)) / 2 ** mantissaBits;
  const sign = word & 0x8000 ? -1 : 1;
  if (exponent === 2 ** exponentBits - 1) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** (1 - bias);
  return sign * (1 + fraction) * 2 ** (exponent - bias);
}

const formats = [
  { dtype: "F16", exponentBits: 5 },
  { dtype: "BF16", exponentBits: 8 },
] as const;

const everyWord = Array.from({ length: 1 << 16 }, (_, word) => word);

describe.each(formats)("$dtype", ({ dtype, exponentBits }) => {
  it("decodes each of its 65,536 words to the value that the format defines", () => {
    const expected = Float32Array.from(everyWord, (word) => valueOf(word, exponentBits));
    expect(decodeWords(dtype, everyWord)).toEqual(expected);
  });

  it("encodes each value it can hold back to the same word", () => {
    const words = everyWord.filter((word) => !Number.isNaN(valueOf(word, exponentBits)));
    expect(encodeWords(dtype, [...decodeWords(dtype, words)])).toEqual(words);
  });

  it("keeps a NaN with any payload a NaN", () => {
    const floats = new Float32Array(Uint32Array.of(0x7f800001, 0xff800001, 0x7fc00000).buffer);
    const words = [...new Uint16Array(encodeFloats(dtype, floats).buffer)];
    expect(words.map((word) => valueOf(word, exponentBits))).toEqual([NaN, NaN, NaN]);
  });

  it("rounds what lies half-way between two words to the even one, everywhere in its range", () => {
    const last = ((2 ** exponentBits - 1) << (15 - exponentBits)) - 1;
    const words = everyWord.filter((word) => word < last);
    const halves = words.map(
      (word) => (valueOf(word, exponentBits) + valueOf(word + 1, exponentBits)) / 2,
    );
    const even = words.map((word) => word + (word % 2));
    expect(encodeWords(dtype, halves)).toEqual(even);
    const negative = even.map((word) => word + 0x8000);
    expect(
      encodeWords(
        dtype,
        halves.map((value) => -value),
      ),
    ).toEqual(negative);
  });

  it("rounds to the nearest word, and half-way to the even one", () => {
    fc.assert(
      fc.property(fc.float({ noNaN: true }), (value) => {
        const [word = 0] = encodeWords(dtype, [value]);
        const rounded = valueOf(word, exponentBits);
        const infinity = (2 ** exponentBits - 1) << (15 - exponentBits);
        // The first value out of range counts as a neighbour: half-way to it is where infinity starts.
        const asNumber = (w: number) =>
          (w & 0x7fff) === infinity
            ? Math.sign(value) * 2 ** (2 ** (exponentBits - 1))
            : valueOf(w, exponentBits);
        const distance = Math.abs(
          asNumber(word) - (Number.isFinite(value) ? value : asNumber(word)),
        );
        for (const neighbour of [word - 1, word + 1]) {
          if ((neighbour & 0x8000) !== (word & 0x8000) || (neighbour & 0x7fff) > infinity) continue;
          const other = Math.abs(asNumber(neighbour) - value);
          expect(distance).toBeLessThanOrEqual(other);
          if (distance === other && Number.isFinite(value)) expect(word & 1).toBe(0);
        }
        if (value !== 0) expect(Math.sign(rounded) * Math.sign(value)).toBeGreaterThanOrEqual(0);
      }),
      { numRuns: 2000 },
    );
  });

  it("decodes an odd number of elements", () => {
    expect([...decodeWords(dtype, encodeWords(dtype, [1, 2, -3]))]).toEqual([1, 2, -3]);
  });
});

it("leaves 32-bit floats as they are", () => {
  const values = Float32Array.of(1.1, -0, NaN);
  const bytes = encodeFloats("F32", values);
  const decoded = new Float32Array(3);
  decodeFloats("F32", bytes.slice().buffer, decoded, 3);
  expect(decoded).toEqual(values);
});
