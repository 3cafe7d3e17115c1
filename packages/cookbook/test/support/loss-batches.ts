import { Datum, TensorData } from "tinker-ts";
import { lossBatch, type LossBatch } from "../../src/losses/loss-batch.js";
import type { Term, TermResult } from "../../src/losses/term.js";

/** One datum: rows of log-probabilities, one number or a list of candidates per position. */
export type Rows = readonly (number | readonly number[])[];

/** A datum with targets of the rows' shape; weights are per position. */
export function datumFor(rows: Rows, weights?: readonly number[]): Datum {
  const width = Array.isArray(rows[0]) ? rows[0].length : 1;
  const shape = width === 1 && !Array.isArray(rows[0]) ? [rows.length] : [rows.length, width];
  const size = rows.length * width;
  const targets = Int32Array.from({ length: size }, (_, slot) => slot % width);
  const spread = Float32Array.from(
    { length: size },
    (_, slot) => weights?.[Math.floor(slot / width)] ?? 1,
  );
  return new Datum({
    modelInput: rows.map((_, position) => position),
    lossFnInputs: {
      target_tokens: new TensorData({ data: targets, shape }),
      ...(weights ? { weights: new TensorData({ data: spread, shape }) } : {}),
    },
  });
}

/** A batch of data with these log-probabilities, in double precision. */
export function batchOf(
  rows: readonly Rows[],
  weights?: readonly (readonly number[])[],
): LossBatch {
  const data = rows.map((row, index) => datumFor(row, weights?.[index]));
  const tensors = data.map((datum) => datum.lossFnInputs["target_tokens"]!);
  const batch = lossBatch(data, tensors);
  return {
    ...batch,
    logprobs: batch.logprobs.map((row, index) => ({
      ...row,
      values: Float64Array.from(rows[index]!.flat()),
    })),
  };
}

/** Prepares and evaluates a term. */
export async function evaluate(term: Term, batch: LossBatch): Promise<TermResult> {
  const prepared = await term.prepare?.(batch.data, { signal: new AbortController().signal });
  return term.evaluate(batch, prepared);
}

/** The derivative of a term by central differences; NaN at a kink, where both sides differ. */
export async function numericGradients(term: Term, batch: LossBatch): Promise<number[][]> {
  const step = 1e-6;
  const prepared = await term.prepare?.(batch.data, { signal: new AbortController().signal });
  const valueAt = (datum: number, slot: number, by: number): number => {
    const logprobs = batch.logprobs.map((row, index) =>
      index === datum
        ? { ...row, values: row.values.map((x, at) => (at === slot ? x + by : x)) }
        : row,
    );
    return term.evaluate({ ...batch, logprobs }, prepared).value;
  };
  const { value } = term.evaluate(batch, prepared);
  return batch.logprobs.map(({ values }, datum) =>
    Array.from(values, (_, slot) => {
      const ahead = (valueAt(datum, slot, step) - value) / step;
      const behind = (value - valueAt(datum, slot, -step)) / step;
      return Math.abs(ahead - behind) > 2e-4 ? Number.NaN : (ahead + behind) / 2;
    }),
  );
}
