import { ArgumentError } from "tinker-ts";
import { countedSlots, type LossBatch } from "./loss-batch.js";
import { zeros, type TermResult } from "./term.js";

/**
 * How values of positions become one number: their sum, their mean over all positions that count, or
 * the mean over data of the means of their positions. Nothing that counts gives 0, not NaN.
 */
export type Reduction = "sum" | "mean" | "mean-per-datum";

const reductions: readonly Reduction[] = ["sum", "mean", "mean-per-datum"];

/** Where a position lies in its datum. */
export interface Place {
  /** Index of the datum. */
  readonly datum: number;
  /** Index of the position in the datum. */
  readonly position: number;
  /** Index of the position's first candidate in the datum's log-probabilities. */
  readonly start: number;
  /** Candidates at the position. */
  readonly width: number;
}

/** Writes the derivative at a place into `gradient`, which starts as zeros, and returns the value there. */
export type AtPlace = (place: Place, logprobs: Float64Array, gradient: Float64Array) => number;

/** Reduces a function of single positions over the positions that count. */
export function reducePositions(batch: LossBatch, reduction: Reduction, at: AtPlace): TermResult {
  checkReduction(reduction);
  const gradients = zeros(batch);
  const counts = batch.masks.map((mask) => mask.reduce((sum, bit) => sum + bit, 0));
  const nonEmpty = counts.filter((count) => count > 0).length;
  let value = 0;
  for (const [datum, row] of batch.logprobs.entries()) {
    const scale = share(reduction, batch.positions, nonEmpty, counts[datum]!);
    for (let position = 0; position < row.positions; position++) {
      if (!batch.masks[datum]![position]) continue;
      const start = position * row.width;
      const slots = row.values.subarray(start, start + row.width);
      const gradient = gradients[datum]!.subarray(start, start + row.width);
      value += scale * at({ datum, position, start, width: row.width }, slots, gradient);
      for (let slot = 0; slot < row.width; slot++) gradient[slot]! *= scale;
    }
  }
  return { value, gradients };
}

/**
 * Writes the derivative of one datum into `gradient`, which starts as zeros, and returns the value. Both
 * lists hold the entries that count; `slots` are their places in the datum.
 */
export type AtDatum = (
  datum: number,
  logprobs: Float64Array,
  gradient: Float64Array,
  slots: readonly number[],
) => number;

/** Reduces a function of whole data, as a sum or as a mean over those with positions that count. */
export function reduceData(batch: LossBatch, reduction: Reduction, at: AtDatum): TermResult {
  checkReduction(reduction);
  const gradients = zeros(batch);
  const slotsOf = batch.logprobs.map((_, datum) => countedSlots(batch, datum));
  const nonEmpty = slotsOf.filter((slots) => slots.length > 0).length;
  const scale = reduction === "sum" ? 1 : 1 / Math.max(nonEmpty, 1);
  let value = 0;
  for (const [datum, slots] of slotsOf.entries()) {
    if (slots.length === 0) continue;
    const { values } = batch.logprobs[datum]!;
    const gradient = new Float64Array(slots.length);
    value +=
      scale *
      at(
        datum,
        Float64Array.from(slots, (slot) => values[slot]!),
        gradient,
        slots,
      );
    for (const [index, slot] of slots.entries()) gradients[datum]![slot] = scale * gradient[index]!;
  }
  return { value, gradients };
}

function checkReduction(reduction: Reduction): void {
  if (reductions.includes(reduction)) return;
  throw new ArgumentError("reduction", `must be one of ${reductions.join(", ")}, got ${reduction}`);
}

function share(reduction: Reduction, positions: number, data: number, ofDatum: number): number {
  if (reduction === "sum") return 1;
  if (reduction === "mean") return 1 / Math.max(positions, 1);
  return 1 / (Math.max(data, 1) * Math.max(ofDatum, 1));
}
