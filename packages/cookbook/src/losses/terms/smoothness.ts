import { ArgumentError } from "tinker-ts";
import { reduceData, type Reduction } from "../reduction.js";
import { term, termWithSides, type SideSource, type Term } from "../term.js";

/** A function of a datum's log-probabilities, with its gradient. */
export type ScalarFunction = (
  logprobs: Float64Array,
  datum: number,
) => { readonly value: number; readonly gradient: Float64Array };

/** Options of `gradientPenalty`. */
export interface GradientPenaltyOptions {
  /** The function with the gradient to hold at a length. A linear one has nothing to train: see `flat`. */
  readonly of: ScalarFunction;
  /**
   * The length wanted.
   * @default 1
   */
  readonly targetNorm?: number;
  /** Other log-probabilities, for the penalty at a random point between both (one draw per datum). */
  readonly between?: SideSource;
  /**
   * Fixes the random points.
   * @default 0
   */
  readonly seed?: number;
  /**
   * How data become one number.
   * @default "mean"
   */
  readonly reduction?: Reduction;
}

/**
 * The squared distance of a function's gradient from a length. The gradient is by log-probabilities, not
 * by inputs or parameters, so this is not a Lipschitz bound on the model. The metric `flat` counts data
 * with a gradient that does not change along itself: they train nothing.
 */
export function gradientPenalty(options: GradientPenaltyOptions): Term {
  const { of, targetNorm = 1, between, seed = 0, reduction = "mean" } = options;
  return termWithSides({ between }, (batch, sides) => {
    let flat = 0;
    const result = reduceData(batch, reduction, (datum, x, gradient, slots) => {
      const other = sides.between?.[datum];
      const share = other ? unitDraw(seed, datum) : 1;
      const point = other
        ? x.map((value, at) => share * value + (1 - share) * other[slots[at]!]!)
        : x;
      const direction = of(point, datum).gradient;
      const norm = Math.hypot(...direction);
      if (norm > 0) {
        const bent = alongGradient(of, point, datum, direction, norm);
        if (bent.every((value) => value === 0)) flat++;
        for (const [at, value] of bent.entries())
          gradient[at] = 2 * (norm - targetNorm) * value * share;
      }
      return (norm - targetNorm) ** 2;
    });
    return { ...result, metrics: { flat } };
  });
}

/** Options of `outputMagnitude`. */
export interface OutputMagnitudeOptions {
  /**
   * The size wanted.
   * @default 1
   */
  readonly target?: number;
  /**
   * What size means: the root of the mean square, or of the sum of squares.
   * @default "rms"
   */
  readonly size?: "rms" | "norm";
  /**
   * How data become one number.
   * @default "mean"
   */
  readonly reduction?: Reduction;
}

/** The squared distance of each datum's log-probabilities from a size. */
export function outputMagnitude(options: OutputMagnitudeOptions = {}): Term {
  const { target = 1, size = "rms", reduction = "mean" } = options;
  if (size !== "rms" && size !== "norm") {
    throw new ArgumentError("size", `must be rms or norm, got ${String(size)}`);
  }
  return term((batch) =>
    reduceData(batch, reduction, (_, x, gradient) => {
      const count = size === "rms" ? x.length : 1;
      const length = Math.hypot(...x) / Math.sqrt(count);
      for (const [at, value] of x.entries()) {
        gradient[at] = length === 0 ? 0 : (2 * (length - target) * value) / (count * length);
      }
      return (length - target) ** 2;
    }),
  );
}

/** How the gradient changes along itself, divided by its length; by a central difference. */
function alongGradient(
  of: ScalarFunction,
  point: Float64Array,
  datum: number,
  direction: Float64Array,
  norm: number,
): Float64Array {
  const step = (1e-5 * Math.max(1, Math.hypot(...point))) / norm;
  const shifted = (sign: number): Float64Array =>
    of(
      point.map((value, at) => value + sign * step * direction[at]!),
      datum,
    ).gradient;
  const ahead = shifted(1);
  const behind = shifted(-1);
  return ahead.map((value, at) => (value - behind[at]!) / (2 * step * norm));
}

/** A number from 0 to 1 that depends on seed and datum alone (splitmix32). */
function unitDraw(seed: number, datum: number): number {
  let z = (seed + Math.imul(datum + 1, 0x9e3779b9)) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
  return ((z ^ (z >>> 16)) >>> 0) / 2 ** 32;
}
