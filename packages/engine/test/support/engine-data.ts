import type { Datum } from "@tinker-ts/engine";

/** A datum that teaches to count on from its first token. */
export function countingDatum(start: number, length: number, weight = 1): Datum {
  const shape = [length];
  return {
    tokens: Int32Array.from({ length }, (_, index) => (start + index) % 300),
    inputs: {
      target_tokens: {
        data: Int32Array.from({ length }, (_, index) => (start + index + 1) % 300),
        shape,
      },
      weights: { data: new Float32Array(length).fill(weight), shape },
    },
  };
}

/** Data of many lengths. */
export function raggedData(count: number, longest: number): Datum[] {
  return Array.from({ length: count }, (_, index) =>
    countingDatum(index * 7, 1 + ((index * 37) % longest)),
  );
}
