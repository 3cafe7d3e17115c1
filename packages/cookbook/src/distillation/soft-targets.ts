import { ArgumentError, Datum, TensorData } from "tinker-ts";
import { shift } from "../data/index.js";
import type { SupervisedExample } from "../renderers/index.js";

/** What a teacher says of a sequence: the most probable tokens at each place, the first missing. */
export type TeacherTopK = readonly (
  | readonly (readonly [token: number, logprob: number])[]
  | null
)[];

/** A place that a server fills when it knows nothing. */
const unknownLogprob = -99_999;

/**
 * A datum whose targets are the teacher's own distribution over its K best tokens, for `cross_entropy`. Its
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
    const known = (teacher[position + 1] ?? []).filter(([, logprob]) => logprob > unknownLogprob);
    return example.weights[position + 1] === 0 ? [] : known;
  });
  const width = Math.max(...rows.map((row) => row.length), 1);
  const tokens = new Int32Array(rows.length * width);
  const weights = new Float32Array(tokens.length);
  for (const [position, row] of rows.entries()) {
    const largest = Math.max(...row.map(([, logprob]) => logprob));
    const total = row.reduce((sum, [, logprob]) => sum + Math.exp(logprob - largest), 0);
    for (const [slot, [token, logprob]] of row.entries()) {
      tokens[position * width + slot] = token;
      weights[position * width + slot] =
        (example.weights[position + 1]! * Math.exp(logprob - largest)) / total;
    }
  }
  const shape = [rows.length, width];
  return new Datum({
    modelInput: input,
    lossFnInputs: {
      target_tokens: new TensorData({ data: tokens, shape }),
      weights: new TensorData({ data: weights, shape }),
    },
  });
}
