import { ArgumentError } from "tinker-ts";
import { countedSlots, type LossBatch } from "../loss-batch.js";
import { reducePositions, type Reduction } from "../reduction.js";
import { term, type Term } from "../term.js";

/** Options of terms that look at the size of log-probabilities or probabilities. */
export interface MagnitudeOptions {
  /**
   * What is measured.
   * @default "logprobs"
   */
  readonly target?: "logprobs" | "probs";
  /**
   * How positions become one number.
   * @default "sum"
   */
  readonly reduction?: Reduction;
}

/**
 * Sum of absolute values.
 *
 * On log-probabilities of chosen tokens this is the negative log-likelihood: it raises likelihood and
 * makes nothing sparse. On probabilities it lowers the likelihood of the tokens that are trained. A
 * penalty that keeps most tokens exactly at a reference is `anchor({ norm: "l1" })`.
 */
export function l1(options: MagnitudeOptions = {}): Term {
  return elementwise(options, (x) => [Math.abs(x), Math.sign(x)]);
}

/** Options of `l2`. */
export interface L2Options extends MagnitudeOptions {
  /**
   * Beyond this distance from the centre the penalty grows linearly instead of quadratically, so that
   * large values keep a gradient of `2 * clip`.
   */
  readonly clip?: number;
  /**
   * What values are measured from: a number, or the mean of all that count.
   * @default 0
   */
  readonly center?: "mean" | number;
}

/**
 * Sum of squares, around a centre if one is given. It pulls log-probabilities, not parameters: weight
 * decay is an option of `optimStep`.
 */
export function l2(options: L2Options = {}): Term {
  const { clip = Number.POSITIVE_INFINITY, center = 0 } = options;
  if (!(clip > 0)) throw new ArgumentError("clip", `must be above 0, got ${clip}`);
  return elementwise(
    options,
    (d) => [
      Math.abs(d) <= clip ? d * d : clip * (2 * Math.abs(d) - clip),
      2 * Math.max(-clip, Math.min(clip, d)),
    ],
    center,
  );
}

/** Options of `elasticNet`. */
export interface ElasticNetOptions extends MagnitudeOptions {
  /**
   * Share of the absolute values, from 0 to 1; the rest are squares.
   * @default 0.5
   */
  readonly l1Ratio?: number;
}

/** A mixture of `l1` and `l2`. */
export function elasticNet(options: ElasticNetOptions = {}): Term {
  const { l1Ratio = 0.5 } = options;
  if (!(l1Ratio >= 0 && l1Ratio <= 1)) {
    throw new ArgumentError("l1Ratio", `must lie between 0 and 1, got ${l1Ratio}`);
  }
  return elementwise(options, (x) => [
    l1Ratio * Math.abs(x) + (1 - l1Ratio) * x * x,
    l1Ratio * Math.sign(x) + 2 * (1 - l1Ratio) * x,
  ]);
}

/** Sums a function of single numbers, measured from a centre; it returns value and slope. */
function elementwise(
  { target = "logprobs", reduction = "sum" }: MagnitudeOptions,
  at: (x: number) => readonly [value: number, slope: number],
  center: "mean" | number = 0,
): Term {
  return term((batch) => {
    const seen = target === "probs" ? probabilities(batch) : batch;
    const counted = seen.logprobs.map((_, datum) => countedSlots(seen, datum));
    const count = Math.max(
      counted.reduce((sum, slots) => sum + slots.length, 0),
      1,
    );
    const meanOf = (rows: readonly Float64Array[]): number =>
      counted.reduce(
        (sum, slots, datum) => slots.reduce((a, slot) => a + rows[datum]![slot]!, sum),
        0,
      ) / count;
    const origin = center === "mean" ? meanOf(seen.logprobs.map(({ values }) => values)) : center;
    const result = reducePositions(seen, reduction, (_, values, gradient) =>
      values.reduce((total, x, slot) => {
        const [value, slope] = at(x - origin);
        gradient[slot] = slope;
        return total + value;
      }, 0),
    );
    // A mean moves with the values: every slope is less the mean of all slopes.
    const pull = center === "mean" ? meanOf(result.gradients) : 0;
    for (const [datum, slots] of counted.entries()) {
      const gradient = result.gradients[datum]!;
      const { values } = seen.logprobs[datum]!;
      for (const slot of slots) {
        gradient[slot] = (gradient[slot]! - pull) * (target === "probs" ? values[slot]! : 1);
      }
    }
    return result;
  });
}

function probabilities(batch: LossBatch): LossBatch {
  const logprobs = batch.logprobs.map((row) => ({ ...row, values: row.values.map(Math.exp) }));
  return { ...batch, logprobs };
}
