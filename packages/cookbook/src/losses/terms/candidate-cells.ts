import { ArgumentError } from "tinker-ts";

/**
 * How the candidates at a position become a distribution:
 *
 * - `bucket`: all other tokens together are one more candidate. Divergences are lower bounds of the full
 *   ones and the mass outside the candidates is controlled.
 * - `renormalize`: divided by their sum; mass outside the candidates is ignored.
 * - `all`: the candidates are the whole vocabulary.
 */
export type Candidates = "bucket" | "renormalize" | "all";

/** The smallest mass that 32-bit log-probabilities can distinguish from zero. */
const tailFloor = 1e-7;

/** A distribution over the candidates that exist, and over the rest if that is a bucket. */
export interface Cells {
  /** Log-probabilities. */
  readonly logs: Float64Array;
  /** Probabilities. */
  readonly probs: Float64Array;
}

/** A distribution and the way back from derivatives by its cells to those by log-probabilities. */
export interface ModelCells extends Cells {
  /** Turns derivatives by the cells' log-probabilities into derivatives by the given ones. */
  pullBack(byCell: Float64Array, gradient: Float64Array): void;
}

/** The cells of the model in training. `slots` are the indices of the candidates that exist. */
export function modelCells(
  logprobs: ArrayLike<number>,
  slots: readonly number[],
  candidates: Candidates,
  temperature = 1,
): ModelCells {
  if (temperature !== 1) {
    const tempered = slots.map((slot) => logprobs[slot]! / temperature);
    return normalised(tempered, slots, temperature);
  }
  const given = slots.map((slot) => logprobs[slot]!);
  if (candidates === "renormalize") return normalised(given, slots, 1);
  const tail = candidates === "bucket" ? tailOf(given) : undefined;
  const logs = Float64Array.from(tail ? [...given, tail.log] : given);
  const probs = logs.map(Math.exp);
  return {
    logs,
    probs,
    pullBack(byCell, gradient) {
      const outside = slots.length;
      // A tail at its floor is a constant; otherwise it loses what a candidate gains.
      const perMass = tail && !tail.floored ? byCell[outside]! / probs[outside]! : 0;
      for (const [cell, slot] of slots.entries()) {
        gradient[slot] = byCell[cell]! - probs[cell]! * perMass;
      }
    },
  };
}

/** The cells of a reference, with the same construction. */
export function referenceCells(
  logprobs: ArrayLike<number>,
  slots: readonly number[],
  candidates: Candidates,
): Cells {
  return modelCells(logprobs, slots, candidates);
}

/** Indices of the candidates that exist at a position. */
export function existingSlots(start: number, width: number, exists?: ArrayLike<number>): number[] {
  const all = Array.from({ length: width }, (_, slot) => slot);
  return exists ? all.filter((slot) => exists[start + slot]) : all;
}

/** Refuses chosen tokens where a distribution is needed. */
export function needCandidates(width: number, name: string): void {
  if (width >= 2) return;
  throw new ArgumentError(
    "data",
    `${name} compares distributions and needs at least two candidates per position (target_tokens of shape [T, K]); ` +
      "for log-probabilities of single tokens use klEstimate, entropyEstimate or anchor",
  );
}

function normalised(
  logs: readonly number[],
  slots: readonly number[],
  temperature: number,
): ModelCells {
  const total = logSumExp(logs);
  const cells = Float64Array.from(logs, (log) => log - total);
  const probs = cells.map(Math.exp);
  return {
    logs: cells,
    probs,
    pullBack(byCell, gradient) {
      const sum = byCell.reduce((a, b) => a + b, 0);
      for (const [cell, slot] of slots.entries()) {
        gradient[slot] = (byCell[cell]! - probs[cell]! * sum) / temperature;
      }
    },
  };
}

function tailOf(logs: readonly number[]): { log: number; floored: boolean } {
  const total = logSumExp(logs);
  const mass = -Math.expm1(total);
  const floored = !(mass > tailFloor);
  return { log: Math.log(floored ? tailFloor : mass), floored };
}

function logSumExp(logs: readonly number[]): number {
  const largest = Math.max(...logs);
  if (!Number.isFinite(largest)) return largest;
  return largest + Math.log(logs.reduce((sum, log) => sum + Math.exp(log - largest), 0));
}
