import { at } from "../util/at.js";
import type { AdamSetting } from "./graphs/adam.js";

const { fround } = Math;

/** The arrays that an update reads and, but for the gradient, writes. */
export interface AdamArrays {
  readonly values: Float32Array;
  readonly gradient: Float32Array;
  readonly firstMoment: Float32Array;
  readonly secondMoment: Float32Array;
}

/**
 * The update of `adamUpdate` in plain numbers, to the same bits: every operator rounds once. It needs no
 * memory and cannot fail, so that a step that has begun can always be brought to its end. Returns the sum
 * of the update's squares.
 */
export function updateByHand(
  settings: Readonly<Record<AdamSetting, Float32Array>>,
  { values, gradient, firstMoment, secondMoment }: AdamArrays,
): number {
  const [clip, eps] = [at(settings.clip, 0), at(settings.eps, 0)];
  const [beta1, oneMinusBeta1] = [at(settings.beta1, 0), at(settings.oneMinusBeta1, 0)];
  const [beta2, oneMinusBeta2] = [at(settings.beta2, 0), at(settings.oneMinusBeta2, 0)];
  const [stepSize, decay] = [at(settings.stepSize, 0), at(settings.decay, 0)];
  let squares = 0;
  for (let i = 0; i < values.length; i++) {
    const slope = fround(at(gradient, i) * clip);
    const first = fround(fround(at(firstMoment, i) * beta1) + fround(slope * oneMinusBeta1));
    const square = fround(slope * slope);
    const second = fround(fround(at(secondMoment, i) * beta2) + fround(square * oneMinusBeta2));
    const direction = fround(first / fround(fround(Math.sqrt(second)) + eps));
    const value = at(values, i);
    const update = fround(fround(direction * stepSize) + fround(value * decay));
    squares += update * update;
    values[i] = value - update;
    firstMoment[i] = first;
    secondMoment[i] = second;
  }
  return squares;
}
