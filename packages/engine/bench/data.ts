import type { Datum } from "@tinker-ts/engine";

/** Repeatable random whole numbers below a limit. */
export function randomIntegers(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** A datum of random tokens; `masked` of its first targets have weight 0. */
export function randomDatum(
  vocabSize: number,
  length: number,
  masked: number,
  seed: number,
): Datum {
  const random = randomIntegers(seed);
  const shape = [length];
  return {
    tokens: Int32Array.from({ length }, () => random(vocabSize)),
    inputs: {
      target_tokens: { data: Int32Array.from({ length }, () => random(vocabSize)), shape },
      weights: { data: Float32Array.from({ length }, (_, i) => (i < masked ? 0 : 1)), shape },
    },
  };
}

/** The same datum with zeros after its end, as a batch of equal lengths would have them. */
export function padded(datum: Datum, length: number): Datum {
  const shape = [length];
  const { target_tokens: targets, weights } = datum.inputs;
  const tokens = new Int32Array(length);
  tokens.set(datum.tokens);
  const data = new Int32Array(length);
  data.set(Int32Array.from(targets?.data ?? [], Number));
  const mask = new Float32Array(length);
  mask.set(Float32Array.from(weights?.data ?? [], Number));
  return { tokens, inputs: { target_tokens: { data, shape }, weights: { data: mask, shape } } };
}
