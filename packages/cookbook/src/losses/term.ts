import type { Datum } from "tinker-ts";
import { checkSideData, type LossBatch, type SideData } from "./loss-batch.js";

/** The value of a term and its derivative by every log-probability. */
export interface TermResult {
  /** The value, without the term's weight. */
  readonly value: number;
  /** One array per datum, in the layout of its log-probabilities. */
  readonly gradients: readonly Float64Array[];
  /** Further numbers to report. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/** What a preparation gets besides the data. */
export interface PrepareContext {
  /** Aborted when another term failed. */
  readonly signal: AbortSignal;
}

/**
 * A part of a loss. What must be waited for (a reference model, a judge) happens in `prepare` and is a
 * constant of the differentiation; `evaluate` is called once per pass and returns value and derivative.
 */
export interface Term<Prepared = unknown> {
  /** Waits for what the term needs besides the log-probabilities. */
  prepare?(data: readonly Datum[], context: PrepareContext): Promise<Prepared> | Prepared;
  /** Value and derivative, from the log-probabilities of this pass. */
  evaluate(batch: LossBatch, prepared: Prepared): TermResult;
}

/** Side data, or how to get them for the data of a pass. */
export type SideSource =
  | SideData
  | ((data: readonly Datum[], context: PrepareContext) => SideData | Promise<SideData>);

/** A term that needs no preparation. */
export function term(evaluate: (batch: LossBatch) => TermResult): Term {
  return { evaluate };
}

/** A term with side data that fit the log-probabilities entry by entry; sources may be absent. */
export function termWithSides<Name extends string>(
  sources: Readonly<Record<Name, SideSource | undefined>>,
  evaluate: (batch: LossBatch, sides: Readonly<Record<Name, SideData | undefined>>) => TermResult,
): Term {
  type Sides = Record<Name, SideData | undefined>;
  const entries = Object.entries(sources) as [Name, SideSource | undefined][];
  const sided: Term<Sides> = {
    async prepare(data, context) {
      const sides = entries.map(async ([name, source]) => {
        return [name, typeof source === "function" ? await source(data, context) : source] as const;
      });
      return Object.fromEntries(await Promise.all(sides)) as Sides;
    },
    evaluate(batch, sides) {
      for (const [name] of entries) {
        const side = sides[name];
        if (side) checkSideData(name, side, batch.logprobs, "values");
      }
      return evaluate(batch, sides);
    },
  };
  return sided;
}

/** Arrays of zeros in the layout of a batch's log-probabilities. */
export function zeros(batch: LossBatch): Float64Array[] {
  return batch.logprobs.map(({ values }) => new Float64Array(values.length));
}
