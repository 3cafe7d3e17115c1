import { at } from "../util/arrays.js";

/** How the next token is drawn. */
export interface PickOptions {
  /** 0 takes the most likely token. */
  readonly temperature: number;
  /** Draw among this many most likely tokens; 0 means all. */
  readonly topK: number;
  /** Draw among the most likely tokens that together have this probability. */
  readonly topP: number;
}

/** Draws a token. `probabilities` are those at the temperature; `random` is uniform in [0, 1). */
export function pickToken(
  logits: Float32Array,
  probabilities: Float32Array,
  options: PickOptions,
  random: () => number,
): number {
  const { temperature, topK, topP } = options;
  if (temperature === 0 || topK === 1) return argmax(logits);
  if (topK === 0 && topP >= 1) return drawFromAll(probabilities, random());
  const candidates = mostLikely(probabilities, topK, topP);
  return drawFrom(probabilities, candidates, random());
}

/** The place of the largest value, the first of several. */
export function argmax(values: Float32Array): number {
  let best = 0;
  let bestValue = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? -Infinity;
    if (value > bestValue) {
      best = i;
      bestValue = value;
    }
  }
  return best;
}

/** The places of the `count` largest values, largest first; ties go to the smaller place. */
export function largest(values: Float32Array, count: number): number[] {
  const heap: number[] = [];
  let floor = -Infinity;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? -Infinity;
    if (heap.length >= count && value <= floor) continue;
    let place = heap.length;
    while (place > 0 && (values[heap[place - 1] ?? 0] ?? 0) < value) place -= 1;
    heap.splice(place, 0, i);
    if (heap.length > count) heap.pop();
    floor = values[heap.at(-1) ?? 0] ?? -Infinity;
  }
  return heap;
}

function drawFromAll(probabilities: Float32Array, random: number): number {
  let sum = 0;
  let last = 0;
  for (let i = 0; i < probabilities.length; i++) {
    const probability = probabilities[i] ?? 0;
    if (probability === 0) continue;
    sum += probability;
    last = i;
    if (sum > random) return i;
  }
  // Rounding may leave the sum just below 1.
  return last;
}

function mostLikely(probabilities: Float32Array, topK: number, topP: number): readonly number[] {
  // All tokens below this bound together have less than 1 - topP, so the wanted set lies above it.
  const bound = topP < 1 && topK === 0 ? (1 - topP) / probabilities.length : 0;
  let candidates: number[];
  if (topK > 0 && topK <= 256) {
    candidates = largest(probabilities, topK);
  } else {
    candidates = [];
    for (let i = 0; i < probabilities.length; i++) {
      if ((probabilities[i] ?? 0) >= bound) candidates.push(i);
    }
    candidates.sort((a, b) => at(probabilities, b) - at(probabilities, a) || a - b);
    if (topK > 0) candidates.length = Math.min(topK, candidates.length);
  }
  if (topP >= 1) return candidates;
  const total = candidates.reduce((sum, token) => sum + at(probabilities, token), 0);
  let sum = 0;
  const end = candidates.findIndex((token) => {
    sum += at(probabilities, token);
    return sum >= topP * (topK > 0 ? total : 1);
  });
  return end < 0 ? candidates : candidates.slice(0, end + 1);
}

function drawFrom(
  probabilities: Float32Array,
  candidates: readonly number[],
  random: number,
): number {
  const total = candidates.reduce((sum, token) => sum + at(probabilities, token), 0);
  let sum = 0;
  for (const token of candidates) {
    sum += at(probabilities, token);
    if (sum > random * total) return token;
  }
  return candidates.at(-1) ?? 0;
}
