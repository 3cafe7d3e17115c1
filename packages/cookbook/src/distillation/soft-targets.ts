import { ArgumentError, Datum, TensorData, type ModelInput } from "tinker-ts";
import { shift } from "../data/index.js";
import type { SupervisedExample } from "../renderers/index.js";

/** A teacher's most probable tokens at each position of a sequence; the first position has none. */
export type TeacherTopK = readonly (
  | readonly (readonly [token: number, logprob: number])[]
  | null
)[];

/** A place that a server fills when it knows nothing. */
const unknownLogprob = -99_999;

/** What a teacher knows of a place, without what a server fills in. */
export function knownTargets(
  row: TeacherTopK[number] | undefined,
): NonNullable<TeacherTopK[number]> {
  return (row ?? []).filter(([, logprob]) => logprob > unknownLogprob);
}

/** Probabilities of some tokens among themselves. */
export function spread(row: NonNullable<TeacherTopK[number]>): number[] {
  const largest = Math.max(...row.map(([, logprob]) => logprob));
  const shares = row.map(([, logprob]) => Math.exp(logprob - largest));
  const total = shares.reduce((sum, share) => sum + share, 0);
  return shares.map((share) => share / total);
}

/**
 * A datum with the teacher's distribution over its K most probable tokens as targets, for `cross_entropy`. Its
 * gradient is that of KL(teacher over K, student). Weights of the example are kept, so that a long example does
 * not count more than it did.
 */
export function softTargetDatum(example: SupervisedExample, teacher: TeacherTopK): Datum {
  const { input, targets } = shift(example.input);
  if (teacher.length !== targets.length + 1) {
    throw new ArgumentError(
      "teacher",
      `must have one entry per position (${targets.length + 1}), got ${teacher.length}`,
    );
  }
  const rows = Array.from(targets, (_, position) => {
    return example.weights[position + 1] === 0 ? [] : knownTargets(teacher[position + 1]);
  });
  return targetDatum(input, rows, example.weights.subarray(1));
}

/** Targets of shape [T, K]; the weights are the teacher's probabilities times the weight of the position. */
export function targetDatum(
  modelInput: ModelInput,
  rows: TeacherTopK,
  placeWeights?: ArrayLike<number>,
): Datum {
  const width = Math.max(1, ...rows.map((row) => row?.length ?? 0));
  const tokens = new Int32Array(rows.length * width);
  const weights = new Float32Array(tokens.length);
  for (const [position, row] of rows.entries()) {
    const probabilities = spread(row ?? []);
    for (const [slot, [token]] of (row ?? []).entries()) {
      tokens[position * width + slot] = token;
      weights[position * width + slot] = (placeWeights?.[position] ?? 1) * probabilities[slot]!;
    }
  }
  const shape = [rows.length, width];
  return new Datum({
    modelInput,
    lossFnInputs: {
      target_tokens: new TensorData({ data: tokens, shape }),
      weights: new TensorData({ data: weights, shape }),
    },
  });
}
