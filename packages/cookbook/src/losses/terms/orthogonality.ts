import { ArgumentError, type Datum } from "tinker-ts";
import { reduceData, type Reduction } from "../reduction.js";
import { term, type Term } from "../term.js";

/** What `matrixOrthogonality` measures; G is the matrix of dot products of the rows. */
export type OrthogonalityMode =
  /** Squares of G outside its diagonal. */
  | "soft"
  /** Squares of G less the unit matrix. */
  | "hard"
  /** The squared distance of G's trace from the number of rows, and the squares outside the diagonal. */
  | "spectral";

/** Options of `orthogonality`. */
export interface OrthogonalityOptions {
  /**
   * With rows of length 1 all three are the same number.
   * @default "soft"
   */
  readonly mode?: OrthogonalityMode;
  /**
   * Whether rows are divided by their length.
   * @default true
   */
  readonly normalize?: boolean;
  /**
   * Whether every row's mean is taken away first; log-probabilities are all negative, so rows are never
   * orthogonal without it.
   * @default true
   */
  readonly center?: boolean;
  /**
   * How data become one number.
   * @default "mean"
   */
  readonly reduction?: Reduction;
}

/**
 * Wants positions of a datum to prefer different candidates. It needs the same candidates at every
 * position, because otherwise columns would not be the same token; anything else is refused.
 */
export function orthogonality(options: OrthogonalityOptions = {}): Term {
  const { mode = "soft", normalize = true, center = true, reduction = "mean" } = options;
  return term((batch) =>
    reduceData(batch, reduction, (datum, values, gradient, slots) => {
      const { width } = batch.logprobs[datum]!;
      needSameCandidates(batch.data[datum]!, datum, width, slots);
      return matrixOrthogonality(values, width, { mode, normalize, center }, gradient);
    }),
  );
}

/** How far rows of a matrix are from orthogonal; writes the derivative into `gradient`. */
export function matrixOrthogonality(
  matrix: Float64Array,
  width: number,
  options: Required<Pick<OrthogonalityOptions, "mode" | "normalize" | "center">>,
  gradient: Float64Array,
): number {
  const rows = matrix.length / width;
  const given = Array.from({ length: rows }, (_, row) =>
    matrix.slice(row * width, (row + 1) * width),
  );
  const centred = options.center ? given.map(withoutMean) : given;
  const lengths = centred.map((row) =>
    options.normalize ? Math.max(Math.hypot(...row), 1e-8) : 1,
  );
  const units = centred.map((row, index) => row.map((value) => value / lengths[index]!));
  const gram = units.map((a) => units.map((b) => dot(a, b)));
  const trace = gram.reduce((sum, row, index) => sum + row[index]!, 0);
  const offTrace = trace - rows;
  let value = options.mode === "spectral" ? offTrace ** 2 : 0;
  for (const [i, unit] of units.entries()) {
    const slope = new Float64Array(width);
    for (const [j, other] of units.entries()) {
      const product = gram[i]![j]!;
      const excess = i !== j ? product : options.mode === "hard" ? product - 1 : 0;
      const trained = i === j && options.mode === "spectral" ? offTrace : excess;
      value += excess ** 2;
      for (let column = 0; column < width; column++) slope[column]! += 4 * trained * other[column]!;
    }
    const across = options.normalize ? dot(unit, slope) : 0;
    const back = slope.map((s, column) => (s - across * unit[column]!) / lengths[i]!);
    gradient.set(options.center ? withoutMean(back) : back, i * width);
  }
  return value;
}

function needSameCandidates(
  datum: Datum,
  index: number,
  width: number,
  slots: readonly number[],
): void {
  const targets = datum.lossFnInputs["target_tokens"]!.toDense().data;
  const same = slots.every((slot) => targets[slot] === targets[slots[0]! + (slot % width)]);
  if (width >= 2 && same) return;
  throw new ArgumentError(
    `data[${index}]`,
    "orthogonality needs the same two or more candidate tokens at every position that counts",
  );
}

function withoutMean(row: Float64Array): Float64Array {
  const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
  return row.map((value) => value - mean);
}

function dot(a: Float64Array, b: Float64Array): number {
  return a.reduce((sum, value, index) => sum + value * b[index]!, 0);
}
