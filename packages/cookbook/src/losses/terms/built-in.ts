import type { LossBatch } from "../loss-batch.js";
import { reducePositions } from "../reduction.js";
import { term, termWithSides, type SideSource, type Term } from "../term.js";

/** The service's `cross_entropy` as a term: the sum of -logprob * weight; weights are 1 where none are given. */
export function crossEntropy(): Term {
  return term((batch) => {
    const weights = batch.data.map(({ lossFnInputs }) => lossFnInputs["weights"]?.toDense().data);
    return reducePositions(batch, "sum", ({ datum, start }, logprobs, gradient) =>
      logprobs.reduce((sum, logprob, slot) => {
        const weight = Number(weights[datum]?.[start + slot] ?? 1);
        gradient[slot] = -weight;
        return sum - weight * logprob;
      }, 0),
    );
  });
}

/** Side data of losses on sampled tokens, entry by entry. */
export interface PolicyInputs {
  /** Log-probabilities that the sampler reported. */
  readonly logprobs: SideSource;
  /** Advantages; 0 for tokens that are not trained. */
  readonly advantages: SideSource;
}

/** Bounds on the ratio between the probability now and when sampling. */
export interface RatioBounds {
  /** The lower bound on the ratio itself. */
  readonly clipLowThreshold?: number;
  /** The upper bound on the ratio itself. */
  readonly clipHighThreshold?: number;
}

/** The service's `importance_sampling` as a term: the sum of -ratio * advantage. */
export function importanceSampling(inputs: PolicyInputs): Term {
  return onTokens(inputs, ({ ratio, advantage }) => [-ratio * advantage, -ratio * advantage]);
}

/** The service's `ppo` as a term. @default bounds of 0.8 and 1.2 */
export function ppo(inputs: PolicyInputs & RatioBounds): Term {
  const { clipLowThreshold: low = 0.8, clipHighThreshold: high = 1.2 } = inputs;
  return onTokens(inputs, ({ ratio, advantage }) => {
    const bound = clamp(ratio, low, high);
    const active = ratio * advantage <= bound * advantage;
    return [-Math.min(ratio * advantage, bound * advantage), active ? -ratio * advantage : 0];
  });
}

/** The service's `cispo` as a term; the bounded ratio is a constant. @default bounds of 0 and 4 */
export function cispo(inputs: PolicyInputs & RatioBounds): Term {
  const { clipLowThreshold: low = 0, clipHighThreshold: high = 4 } = inputs;
  return onTokens(inputs, ({ logprob, ratio, advantage }) => {
    const coefficient = clamp(ratio, low, high) * advantage;
    return [-coefficient * logprob, -coefficient];
  });
}

/**
 * The service's `dro` as a term. Its square acts where the advantage is 0 as well, so give the loss masks
 * that leave out what was not sampled.
 */
export function dro(
  inputs: PolicyInputs & {
    /**
     * Strength of the pull towards the sampler's log-probabilities.
     * @default 0.05
     */
    readonly beta?: number;
  },
): Term {
  const { beta = 0.05 } = inputs;
  return onTokens(inputs, ({ logprob, drift, advantage }) => [
    (beta / 2) * drift * drift - logprob * advantage,
    beta * drift - advantage,
  ]);
}

interface SampledToken {
  readonly logprob: number;
  /** How the log-probability has moved since sampling. */
  readonly drift: number;
  readonly ratio: number;
  readonly advantage: number;
}

function onTokens(
  { logprobs, advantages }: PolicyInputs,
  at: (token: SampledToken) => readonly [value: number, slope: number],
): Term {
  return termWithSides({ logprobs, advantages }, (batch: LossBatch, sides) =>
    reducePositions(batch, "sum", ({ datum, start }, current, gradient) => {
      const logprob = current[0]!;
      const drift = logprob - sides.logprobs![datum]![start]!;
      const advantage = sides.advantages![datum]![start]!;
      const [value, slope] = at({ logprob, drift, ratio: Math.exp(drift), advantage });
      gradient[0] = slope;
      return value;
    }),
  );
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
