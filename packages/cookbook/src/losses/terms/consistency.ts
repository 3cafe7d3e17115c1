import { ArgumentError } from "tinker-ts";
import { countedSlots } from "../loss-batch.js";
import { reduceData, reducePositions } from "../reduction.js";
import { term, termWithSides, zeros, type SideSource, type Term } from "../term.js";
import { klDivergence, type CandidateOptions } from "./divergences.js";

/** Options of `consistency`. */
export interface ConsistencyOptions extends CandidateOptions {
  /** Log-probabilities of the other output, entry by entry; a constant. */
  readonly pair: SideSource;
  /**
   * The distance: mean square, mean absolute, one minus the cosine of each datum, or the symmetric
   * divergence over candidates. The cosine ignores scale and is ruled by rare tokens.
   * @default "mse"
   */
  readonly metric?: "mse" | "l1" | "cosine" | "kl";
}

/** The distance between two outputs for one input, of which only this one is in training. */
export function consistency(options: ConsistencyOptions): Term {
  const { pair, metric = "mse", reduction = "mean" } = options;
  if (metric === "kl") return klDivergence({ ...options, reference: pair, direction: "symmetric" });
  if (metric === "cosine") {
    return termWithSides({ pair }, (batch, sides) =>
      reduceData(batch, reduction, (datum, x, gradient, slots) =>
        cosineDistance(
          x,
          Float64Array.from(slots, (slot) => sides.pair![datum]![slot]!),
          gradient,
        ),
      ),
    );
  }
  const distance = distances[metric];
  if (!distance) throw new ArgumentError("metric", `must be mse, l1, cosine or kl, got ${metric}`);
  return termWithSides({ pair }, (batch, sides) =>
    reducePositions(batch, reduction, ({ datum, start }, logprobs, gradient) =>
      logprobs.reduce((sum, x, slot) => {
        const [value, slope] = distance(x - sides.pair![datum]![start + slot]!);
        gradient[slot] = slope;
        return sum + value;
      }, 0),
    ),
  );
}

/** Options of `pairedConsistency`. */
export interface PairedConsistencyOptions {
  /** Indices of data with outputs that should agree, counted position by counted position. */
  readonly pairs: readonly (readonly [first: number, second: number])[];
  /**
   * The distance.
   * @default "mse"
   */
  readonly metric?: "mse" | "l1";
  /** A side that is taken as a constant; by default both are trained. */
  readonly stop?: "first" | "second";
}

/** The mean distance between two outputs of the model in training, for instance of two wordings. */
export function pairedConsistency({ pairs, metric = "mse", stop }: PairedConsistencyOptions): Term {
  const distance = distances[metric];
  if (!distance) throw new ArgumentError("metric", `must be mse or l1, got ${metric}`);
  return term((batch) => {
    const gradients = zeros(batch);
    const slots = pairs.map((pair) => pair.map((datum) => countedSlots(batch, datum)));
    const total = slots.reduce((sum, [first]) => sum + first!.length, 0);
    let value = 0;
    for (const [index, [first, second]] of pairs.entries()) {
      const [left, right] = slots[index]!;
      if (left!.length !== right!.length) {
        throw new ArgumentError(
          `pairs[${index}]`,
          `data ${first} and ${second} have ${left!.length} and ${right!.length} values that count; they must be as many`,
        );
      }
      for (const [at, slot] of left!.entries()) {
        const other = right![at]!;
        const [d, slope] = distance(
          batch.logprobs[first]!.values[slot]! - batch.logprobs[second]!.values[other]!,
        );
        value += d / total;
        if (stop !== "first") gradients[first]![slot]! += slope / total;
        if (stop !== "second") gradients[second]![other]! -= slope / total;
      }
    }
    return { value, gradients };
  });
}

type Distance = (difference: number) => readonly [value: number, slope: number];

const distances: Readonly<Record<string, Distance>> = {
  mse: (d) => [d * d, 2 * d],
  l1: (d) => [Math.abs(d), Math.sign(d)],
};

const smallestNorm = 1e-8;

/** One minus the cosine of the angle between two vectors, and its derivative by the first. */
function cosineDistance(x: Float64Array, y: Float64Array, gradient: Float64Array): number {
  const dot = x.reduce((sum, value, index) => sum + value * y[index]!, 0);
  const length = Math.hypot(...x);
  const xNorm = Math.max(length, smallestNorm);
  const yNorm = Math.max(Math.hypot(...y), smallestNorm);
  for (const [index, value] of x.entries()) {
    const turned = length > smallestNorm ? (dot * value) / (xNorm ** 3 * yNorm) : 0;
    gradient[index] = turned - y[index]! / (xNorm * yNorm);
  }
  return 1 - dot / (xNorm * yNorm);
}
