import { ArgumentError, type CustomLoss, type CustomLossFn, type Datum } from "tinker-ts";
import { lossBatch, type LossBatch, type SideData } from "./loss-batch.js";
import { zeros, type PrepareContext, type Term, type TermResult } from "./term.js";
import { weightAt, type WeightSchedule } from "./weight-schedule.js";

/** A term with its name and its part in the loss. */
export interface WeightedTerm {
  /** Names the term's metrics; unique in a loss. */
  readonly name: string;
  /** What is added to the loss. */
  readonly term: Term;
  /**
   * Factor of the term, also negative; 0 only reports it.
   * @default 1
   */
  readonly weight?: number | WeightSchedule;
}

/** Called for each term as it runs; errors that it throws are ignored. */
export type TermListener = (event: TermEvent) => void;

/** One term's start, end or failure. */
export type TermEvent =
  | { readonly type: "start"; readonly name: string; readonly weight: number }
  | {
      readonly type: "stop";
      readonly name: string;
      readonly durationMs: number;
      readonly value: number;
    }
  | {
      readonly type: "error";
      readonly name: string;
      readonly durationMs: number;
      readonly error: unknown;
    };

/** Parts of a loss. */
export interface LossParts {
  /** The loss that the terms are added to; without one, the terms are the loss (beside a built-in one). */
  readonly base?: Term;
  /** Regularizers. */
  readonly terms?: readonly WeightedTerm[];
  /** The counted positions, per datum; by default those with weights other than zero. */
  readonly masks?: SideData | ((data: readonly Datum[]) => SideData);
  /** Called for each term as it runs. */
  readonly onTerm?: TermListener;
}

/** A loss made of parts. */
export interface ComposedLoss {
  /** The loss at a training step, counted from 0, for `training.forwardBackwardCustom`. */
  at(step: number): CustomLossFn;
}

/**
 * Composes a loss of a base and weighted terms: `total = base + sum(weight * value)`.
 *
 * - Every part is evaluated once per pass, in the order of the list; what it must wait for is awaited
 *   before, all parts at once.
 * - The gradient that is sent is the sum of the parts' gradients; the norms are taken from the same arrays.
 * - A part that fails, or a number that is not finite, fails the pass before anything is sent, by name.
 *
 * Metrics: `loss/total`, `loss/base`, `loss/grad_norm`, `loss/positions`, and per term `reg/NAME/value`,
 * `weight`, `contribution`, `grad_norm`, `share` (of the total's norm), `cosine` (to the base's gradient) and
 * what the term itself reports.
 */
export function composeLoss({ base, terms = [], masks, onTerm }: LossParts): ComposedLoss {
  checkNames(base, terms);
  return {
    at: (step) => {
      if (!Number.isInteger(step) || step < 0) {
        throw new ArgumentError("step", `must be an integer of at least 0, not ${String(step)}`);
      }
      const parts = terms.map(({ name, term, weight = 1 }) => ({
        name,
        term,
        weight: weightAt(weight, step, name),
      }));
      return async (data, logprobs) => {
        const all = base ? [{ name: "base", term: base, weight: 1 }, ...parts] : parts;
        const prepared = await prepareAll(all, data);
        const batch = lossBatch(data, logprobs, typeof masks === "function" ? masks(data) : masks);
        const results = all.map((part, index) => run(part, batch, prepared[index], onTerm));
        return total(batch, all, results, base !== undefined);
      };
    },
  };
}

interface Part {
  readonly name: string;
  readonly term: Term;
  readonly weight: number;
}

function checkNames(base: Term | undefined, terms: readonly WeightedTerm[]): void {
  if (!base && terms.length === 0)
    throw new ArgumentError("terms", "a loss without a base needs at least one");
  const names = new Set<string>();
  for (const [index, { name }] of terms.entries()) {
    if (typeof name !== "string" || name === "")
      throw new ArgumentError(`terms[${index}].name`, "must not be empty");
    if (names.has(name)) throw new ArgumentError(`terms[${index}].name`, `"${name}" is used twice`);
    names.add(name);
  }
}

async function prepareAll(parts: readonly Part[], data: readonly Datum[]): Promise<unknown[]> {
  const abort = new AbortController();
  const context: PrepareContext = { signal: abort.signal };
  return Promise.all(
    parts.map(async ({ name, term }) => {
      try {
        return await term.prepare?.(data, context);
      } catch (error) {
        abort.abort(error);
        throw named(name, error);
      }
    }),
  );
}

function run(
  { name, term, weight }: Part,
  batch: LossBatch,
  prepared: unknown,
  onTerm?: TermListener,
): TermResult {
  const started = performance.now();
  notify(onTerm, { type: "start", name, weight });
  try {
    const result = term.evaluate(batch, prepared);
    checkResult(result, batch);
    notify(onTerm, {
      type: "stop",
      name,
      durationMs: performance.now() - started,
      value: result.value,
    });
    return result;
  } catch (error) {
    notify(onTerm, { type: "error", name, durationMs: performance.now() - started, error });
    throw named(name, error);
  }
}

function checkResult({ value, gradients }: TermResult, { logprobs }: LossBatch): void {
  if (typeof value !== "number")
    throw new ArgumentError("value", `must be one number, got ${String(value)}`);
  if (!Number.isFinite(value)) throw new ArgumentError("value", `must be finite, got ${value}`);
  for (const [datum, { values, width }] of logprobs.entries()) {
    const gradient = gradients[datum];
    if (gradient?.length !== values.length) {
      throw new ArgumentError(
        `gradients[${datum}]`,
        `must have ${values.length} values, got ${gradient?.length ?? "none"}`,
      );
    }
    const bad = gradient.findIndex((entry) => !Number.isFinite(entry));
    if (bad >= 0) {
      const position = Math.floor(bad / width);
      throw new ArgumentError(
        `gradients[${datum}]`,
        `is ${gradient[bad]} at position ${position}; it must be finite`,
      );
    }
  }
}

function total(
  batch: LossBatch,
  parts: readonly Part[],
  results: readonly TermResult[],
  hasBase: boolean,
): CustomLoss {
  const gradients = zeros(batch);
  let loss = 0;
  for (const [index, { weight }] of parts.entries()) {
    const { value, gradients: own } = results[index]!;
    if (weight === 0) continue;
    loss += weight * value;
    for (const [datum, gradient] of gradients.entries()) {
      for (const [slot, entry] of own[datum]!.entries()) gradient[slot]! += weight * entry;
    }
  }
  const base = hasBase ? results[0]! : undefined;
  const norm = normOf(gradients);
  const metrics: Record<string, number> = {
    "loss/total": loss,
    ...(base ? { "loss/base": base.value, ...prefixed("loss/base", base.metrics) } : {}),
    "loss/grad_norm": norm,
    "loss/positions": batch.positions,
  };
  for (const [index, { name, weight }] of parts.entries()) {
    if (hasBase && index === 0) continue;
    const { value, gradients: own, metrics: reported } = results[index]!;
    const ownNorm = normOf(own);
    Object.assign(
      metrics,
      prefixed(`reg/${name}`, {
        value,
        weight,
        contribution: weight * value,
        grad_norm: ownNorm,
        share: norm === 0 ? 0 : (Math.abs(weight) * ownNorm) / norm,
        ...(base ? { cosine: cosine(own, base.gradients) } : {}),
        ...reported,
      }),
    );
  }
  return { loss, gradients, metrics };
}

function prefixed(prefix: string, metrics: TermResult["metrics"] = {}): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [`${prefix}/${name}`, value]),
  );
}

function normOf(gradients: readonly Float64Array[]): number {
  return Math.sqrt(dot(gradients, gradients));
}

function cosine(a: readonly Float64Array[], b: readonly Float64Array[]): number {
  const lengths = normOf(a) * normOf(b);
  return lengths === 0 ? 0 : dot(a, b) / lengths;
}

function dot(a: readonly Float64Array[], b: readonly Float64Array[]): number {
  return a.reduce(
    (sum, row, datum) => row.reduce((inner, x, slot) => inner + x * b[datum]![slot]!, sum),
    0,
  );
}

function named(name: string, error: unknown): Error {
  const message = error instanceof Error ? error.message : String(error);
  return new ArgumentError(`terms.${name}`, message, { cause: error });
}

function notify(listener: TermListener | undefined, event: TermEvent): void {
  try {
    listener?.(event);
  } catch {
    // A listener never affects training.
  }
}
