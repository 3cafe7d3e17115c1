import { ArgumentError } from "tinker-ts";
import { reducePositions, type Reduction } from "../reduction.js";
import { termWithSides, type SideSource, type Term } from "../term.js";

/**
 * Estimates on single sampled tokens. They hold for tokens that the model itself sampled at temperature 1;
 * for tokens of an older policy give its log-probabilities as `behavior`, for tokens that were not sampled
 * use `anchor`.
 */
interface EstimateOptions {
  /** Log-probabilities of the policy that sampled the tokens, if it was not the current model. */
  readonly behavior?: SideSource;
  /**
   * The largest weight a token of an older policy may get.
   * @default 4
   */
  readonly maxRatio?: number;
  /**
   * How positions become one number.
   * @default "mean"
   */
  readonly reduction?: Reduction;
}

/** Options of `klEstimate`. */
export interface KlEstimateOptions extends EstimateOptions {
  /** Log-probabilities of the same tokens under the reference. */
  readonly reference: SideSource;
  /**
   * With d = logprob - reference: `k2` = d²/2 and `score` = stop(d) * logprob train KL(model || reference),
   * `k3` = exp(-d) - 1 + d trains KL(reference || model). The mean of d itself (k1) estimates the
   * divergence but has no gradient in expectation, so it is reported and not offered as a loss.
   * @default "k2"
   */
  readonly estimator?: "k2" | "k3" | "score";
}

/** Below this d, a token that the policy has abandoned, exp(-d) is held constant. */
const smallestDrift = -20;

/** An estimate of the divergence from a reference on sampled tokens; metrics `k1` and `k3` report it. */
export function klEstimate(options: KlEstimateOptions): Term {
  const { reference, behavior, estimator = "k2", maxRatio = 4, reduction = "mean" } = options;
  if (!["k2", "k3", "score"].includes(estimator)) {
    throw new ArgumentError(
      "estimator",
      `must be k2, k3 or score, got ${estimator}${(estimator as string) === "k1" ? ": the gradient of k1 is 0 in expectation" : ""}`,
    );
  }
  return termWithSides({ reference, behavior }, (batch, sides) => {
    const seen = { k1: 0, k3: 0, capped: 0 };
    const result = reducePositions(
      batch,
      reduction,
      ({ datum, start, width }, logprobs, gradient) => {
        needSingle(width, "klEstimate");
        const logprob = logprobs[0]!;
        const drift = logprob - sides.reference![datum]![start]!;
        const weight = ratioTo(sides.behavior?.[datum]?.[start], logprob, maxRatio);
        const inverse = Math.exp(-Math.max(drift, smallestDrift));
        const k3 = inverse - 1 + drift;
        seen.k1 += drift;
        seen.k3 += k3;
        if (drift < smallestDrift) seen.capped++;
        gradient[0] = weight * (estimator === "k3" ? 1 - inverse : drift);
        return weight * { k2: (drift * drift) / 2, k3, score: drift * logprob }[estimator];
      },
    );
    const count = Math.max(batch.positions, 1);
    return {
      ...result,
      metrics: { k1: seen.k1 / count, k3: seen.k3 / count, capped: seen.capped },
    };
  });
}

/** Options of `entropyEstimate`. */
export interface EntropyEstimateOptions extends EstimateOptions {
  /** `maximize` is the exploration bonus, `minimize` sharpens. */
  readonly mode: "minimize" | "maximize";
  /**
   * Subtracted from the log-probabilities to cut variance: a number, or the mean of the batch, taken as a
   * constant.
   * @default "mean"
   */
  readonly baseline?: number | "mean";
}

/**
 * Trains the entropy on sampled tokens. The mean of -logprob estimates it (metric `entropy`) but trains
 * nothing in expectation; half the square around a baseline has its gradient.
 */
export function entropyEstimate(options: EntropyEstimateOptions): Term {
  const { mode, baseline = "mean", behavior, maxRatio = 4, reduction = "mean" } = options;
  if (mode !== "minimize" && mode !== "maximize") {
    throw new ArgumentError("mode", `must be minimize or maximize, got ${String(mode)}`);
  }
  const sign = mode === "maximize" ? 1 : -1;
  return termWithSides({ behavior }, (batch, sides) => {
    const mean = reducePositions(batch, "mean", (_, logprobs) => logprobs[0]!).value;
    const origin = baseline === "mean" ? mean : baseline;
    const result = reducePositions(
      batch,
      reduction,
      ({ datum, start, width }, logprobs, gradient) => {
        needSingle(width, "entropyEstimate");
        const logprob = logprobs[0]!;
        const weight = sign * ratioTo(sides.behavior?.[datum]?.[start], logprob, maxRatio);
        gradient[0] = weight * (logprob - origin);
        return (weight * (logprob - origin) ** 2) / 2;
      },
    );
    return { ...result, metrics: { entropy: -mean } };
  });
}

/** Options of `anchor`. */
export interface AnchorOptions {
  /** Log-probabilities to stay near, entry by entry. */
  readonly reference: SideSource;
  /**
   * `l2` is half the square of the distance; `l1` keeps most entries exactly at the reference.
   * @default "l2"
   */
  readonly norm?: "l1" | "l2";
  /**
   * How positions become one number.
   * @default "mean"
   */
  readonly reduction?: Reduction;
}

/**
 * Pulls log-probabilities towards given ones, position by position. For supervised data, with tokens
 * that were not sampled, this is what remains of a KL penalty; it is not a divergence.
 */
export function anchor({ reference, norm = "l2", reduction = "mean" }: AnchorOptions): Term {
  if (norm !== "l1" && norm !== "l2") {
    throw new ArgumentError("norm", `must be l1 or l2, got ${String(norm)}`);
  }
  return termWithSides({ reference }, (batch, sides) =>
    reducePositions(batch, reduction, ({ datum, start }, logprobs, gradient) =>
      logprobs.reduce((sum, logprob, slot) => {
        const distance = logprob - sides.reference![datum]![start + slot]!;
        gradient[slot] = norm === "l1" ? Math.sign(distance) : distance;
        return sum + (norm === "l1" ? Math.abs(distance) : (distance * distance) / 2);
      }, 0),
    ),
  );
}

/** A constant of the differentiation: how much more probable the token is now than when it was sampled. */
function ratioTo(behavior: number | undefined, logprob: number, maxRatio: number): number {
  return behavior === undefined ? 1 : Math.min(Math.exp(logprob - behavior), maxRatio);
}

function needSingle(width: number, name: string): void {
  if (width === 1) return;
  throw new ArgumentError(
    "data",
    `${name} works on one token per position, got ${width} candidates; use klDivergence or entropy`,
  );
}
