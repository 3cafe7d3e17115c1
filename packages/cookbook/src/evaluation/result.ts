import type { Line } from "tinker-ts/run-log";
import type { Attempt } from "./ask.js";
import { shareInterval } from "./interval.js";
import { passAtK, passAtKValues } from "./pass-at-k.js";

/** How well a model did. */
export interface EvalResult {
  readonly name: string;
  /** The share of right answers; those that failed or were cut off are wrong. */
  readonly score: number;
  /** Where the score lies with a certainty of 95 %, as far as the choice of examples goes. */
  readonly interval: readonly [low: number, high: number];
  /** The share among examples that were answered to the end. */
  readonly scoreCompleted: number;
  readonly numExamples: number;
  readonly numCorrect: number;
  readonly numErrors: number;
  /** Answers that were cut off, and questions that did not fit. */
  readonly numTruncated: number;
  /** Those of them that were still thinking, so that there is no answer at all. */
  readonly numThinkingCutOff: number;
  /** The means of the metrics of graders. */
  readonly metrics: Readonly<Record<string, number>>;
  /** By k: the chance that one of k answers is right; empty with one answer per example. */
  readonly passAtK: ReadonlyMap<number, number>;
  readonly seconds: number;
  /** The answers, example by example. */
  readonly attempts: readonly (readonly Attempt[])[];
}

/** Adds up the answers; with several per example, the score is the mean share of right ones. */
export function summarize(
  name: string,
  attempts: readonly (readonly Attempt[])[],
  seconds: number,
): EvalResult {
  const all = attempts.flat();
  const numCorrect = all.filter(isRight).length;
  const numErrors = all.filter(({ error }) => error !== undefined).length;
  const numTruncated = all.filter(isCut).length;
  const numThinkingCutOff = all.filter(({ metrics }) => "thinking_cut_off" in metrics).length;
  const answered = all.length - numErrors - numTruncated;
  const samples = Math.max(0, ...attempts.map(({ length }) => length));
  const ks = samples > 1 ? passAtKValues(samples) : [];
  return {
    name,
    score: all.length === 0 ? 0 : numCorrect / all.length,
    interval: shareInterval(numCorrect, all.length),
    scoreCompleted: answered === 0 ? 0 : numCorrect / answered,
    numExamples: attempts.length,
    numCorrect,
    numErrors,
    numTruncated,
    numThinkingCutOff,
    metrics: averages(all.map(({ metrics }) => metrics)),
    passAtK: new Map(
      ks.map((k) => [
        k,
        mean(attempts.map((made) => passAtK(made.length, made.filter(isRight).length, k))),
      ]),
    ),
    seconds,
    attempts,
  };
}

/** The form of `result.json`. */
export function toResultLine(result: EvalResult): Line {
  return {
    name: result.name,
    score: result.score,
    score_interval_95: result.interval,
    score_completed: result.scoreCompleted,
    num_examples: result.numExamples,
    num_correct: result.numCorrect,
    num_errors: result.numErrors,
    num_truncated: result.numTruncated,
    num_thinking_cut_off: result.numThinkingCutOff,
    metrics: result.metrics,
    time_seconds: result.seconds,
    pass_at_k: Object.fromEntries([...result.passAtK].map(([k, share]) => [String(k), share])),
  };
}

/** Whether an answer is right; one that failed or was cut off is not, whatever its grader said. */
export function isRight(attempt: Attempt): boolean {
  return attempt.reward > 0 && attempt.error === undefined && !isCut(attempt);
}

function isCut({ metrics }: Attempt): boolean {
  return "max_tokens_reached" in metrics || "context_overflow" in metrics;
}

function averages(list: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const values = new Map<string, number[]>();
  for (const metrics of list) {
    for (const [key, value] of Object.entries(metrics)) {
      values.set(key, [...(values.get(key) ?? []), value]);
    }
  }
  return Object.fromEntries([...values].map(([key, numbers]) => [key, mean(numbers)]));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
