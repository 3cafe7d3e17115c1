import { ArgumentError, type CustomLoss, type Datum, type TensorData } from "tinker-ts";
import type { Numbers } from "../rl/index.js";

/** How much more probable than under the reference the two completions of a pair are, as sums over tokens. */
export interface PairShift {
  /** Of the chosen completion. */
  readonly chosen: number;
  /** Of the rejected completion. */
  readonly rejected: number;
  /** Trained tokens of the chosen completion. */
  readonly chosenTokens: number;
  /** Trained tokens of the rejected completion. */
  readonly rejectedTokens: number;
}

/** The value of a pair's loss and its derivatives by the two shifts. */
export interface PairSlope {
  /** The value. */
  readonly value: number;
  /** Derivative by `chosen`. */
  readonly byChosen: number;
  /** Derivative by `rejected`. */
  readonly byRejected: number;
}

/** A loss on pairs of completions, of which one is preferred. */
export interface PreferenceLoss {
  /** Its value is logged as `NAME_loss`. */
  readonly name: string;
  /** Settings besides `beta`; a resumed run must have the same. */
  readonly settings?: Readonly<Record<string, number>> | undefined;
  /** Whether the loss compares with a reference model. */
  readonly needsReference: boolean;
  /** Strength; rewards are reported as `beta` times a shift. */
  readonly beta: number;
  /** The loss of one pair. */
  at(pair: PairShift): PairSlope;
}

/** Direct preference optimization: -log sigmoid(beta * (chosen - rejected)). */
export function dpo({
  beta = 0.1,
}: { /** Strength. @default 0.1 */ readonly beta?: number } = {}): PreferenceLoss {
  return {
    name: "dpo",
    needsReference: true,
    beta: positive("beta", beta),
    at: ({ chosen, rejected }) => ofMargin(beta * (chosen - rejected), beta, softplusLoss),
  };
}

/** Identity preference optimization: (margin - 1 / (2 beta))², which does not drive a margin without end. */
export function ipo({
  beta = 0.1,
}: { /** Strength. @default 0.1 */ readonly beta?: number } = {}): PreferenceLoss {
  positive("beta", beta);
  return {
    name: "ipo",
    needsReference: true,
    beta,
    at: ({ chosen, rejected }) =>
      ofMargin(chosen - rejected, 1, (margin) => {
        const excess = margin - 1 / (2 * beta);
        return [excess * excess, 2 * excess];
      }),
  };
}

/** Options of `simpo`. */
export interface SimpoOptions {
  /** Strength. @default 2 */
  readonly beta?: number;
  /** By how much the chosen completion should win, per token. @default 0.5 */
  readonly margin?: number;
}

/** Simple preference optimization: log-probabilities per token instead of a reference. */
export function simpo({ beta = 2, margin: target = 0.5 }: SimpoOptions = {}): PreferenceLoss {
  positive("beta", beta);
  return {
    name: "simpo",
    settings: { margin: target },
    needsReference: false,
    beta,
    at({ chosen, rejected, chosenTokens, rejectedTokens }) {
      const perToken = chosen / Math.max(chosenTokens, 1) - rejected / Math.max(rejectedTokens, 1);
      const { value, byChosen } = ofMargin(beta * perToken - target, beta, softplusLoss);
      return {
        value,
        byChosen: byChosen / Math.max(chosenTokens, 1),
        byRejected: -byChosen / Math.max(rejectedTokens, 1),
      };
    },
  };
}

/** A single completion and how much its probability has changed. */
export interface UnpairedShift {
  /** How much more probable than under the reference. */
  readonly shift: number;
  /** True for a desirable completion. */
  readonly desirable: boolean;
}

/** Options of `kto`. */
export interface KtoOptions {
  /** Strength. @default 0.1 */
  readonly beta?: number;
  /** Weight of desirable completions. @default 1 */
  readonly desirableWeight?: number;
  /** Weight of undesirable completions. @default 1 */
  readonly undesirableWeight?: number;
}

/** A loss on single completions, each desirable or undesirable. */
export interface UnpairedLoss {
  /** Its value is logged as `NAME_loss`. */
  readonly name: string;
  /** Settings besides `beta`; a resumed run must have the same. */
  readonly settings?: Readonly<Record<string, number>> | undefined;
  /** Whether the loss compares with a reference model. */
  readonly needsReference: boolean;
  /** Strength; rewards are reported as `beta` times a shift. */
  readonly beta: number;
  /** The loss of a batch, its derivatives by each shift, and the shift that counts as neither good nor bad. */
  atAll(completions: readonly UnpairedShift[]): {
    readonly value: number;
    readonly slopes: readonly number[];
    readonly origin: number;
  };
}

/**
 * Values single completions as prospect theory does (KTO): desirable ones should gain, and undesirable ones lose,
 * against the batch's mean shift, which is a constant and never below 0.
 */
export function kto({
  beta = 0.1,
  desirableWeight = 1,
  undesirableWeight = 1,
}: KtoOptions = {}): UnpairedLoss {
  positive("beta", beta);
  return {
    name: "kto",
    settings: { desirableWeight, undesirableWeight },
    needsReference: true,
    beta,
    atAll(completions) {
      const origin = Math.max(meanOf(completions.map(({ shift }) => shift)), 0);
      let value = 0;
      const slopes = completions.map(({ shift, desirable }) => {
        const weight = (desirable ? desirableWeight : undesirableWeight) / completions.length;
        const sign = desirable ? 1 : -1;
        const gain = sigmoid(sign * beta * (shift - origin));
        value += weight * (1 - gain);
        return -sign * weight * beta * gain * (1 - gain);
      });
      return { value, slopes, origin };
    },
  };
}

/** Log-probabilities of a datum under a reference model: one per token, or their sum by the weights. */
export type Reference = ArrayLike<number> | number;

/**
 * The loss of a batch of pairs: data at even places are chosen, those after them rejected. Value and gradient
 * are means over pairs.
 */
export function pairLoss(
  loss: PreferenceLoss,
  data: readonly Datum[],
  logprobs: readonly TensorData[],
  references: readonly Reference[] | undefined,
): CustomLoss & { readonly metrics: Record<string, number> } {
  if (data.length % 2 !== 0) {
    throw new ArgumentError(
      "data",
      `must be pairs of a chosen and a rejected one, got ${data.length} data`,
    );
  }
  needReferences(loss, references);
  const shifts = data.map((datum, index) =>
    weightedShift(datum, logprobs[index]!.data as ArrayLike<number>, references?.[index]),
  );
  const pairs = Array.from({ length: data.length / 2 }, (_, pair): PairShift => {
    const [chosen, rejected] = [shifts[2 * pair]!, shifts[2 * pair + 1]!];
    return {
      chosen: chosen.shift,
      rejected: rejected.shift,
      chosenTokens: chosen.tokens,
      rejectedTokens: rejected.tokens,
    };
  });
  const slopes = pairs.map((pair) => loss.at(pair));
  const value = meanOf(slopes.map((slope) => slope.value));
  const gradients = shifts.map(({ weights }, index) => {
    const { byChosen, byRejected } = slopes[index >> 1]!;
    const slope = (index % 2 === 0 ? byChosen : byRejected) / pairs.length;
    return Float64Array.from(weights, (weight) => slope * weight);
  });
  return {
    loss: value,
    gradients,
    metrics: { ...preferenceMetrics(pairs, loss.beta), [`${loss.name}_loss`]: value },
  };
}

/**
 * The loss of a batch of single completions; `desirable` has a flag for each. `accuracy` is the share of completions on
 * the right side of the origin.
 */
export function unpairedLoss(
  loss: UnpairedLoss,
  data: readonly Datum[],
  logprobs: readonly TensorData[],
  references: readonly Reference[] | undefined,
  desirable: readonly boolean[],
): CustomLoss & { readonly metrics: Record<string, number> } {
  needReferences(loss, references);
  const shifts = data.map((datum, index) =>
    weightedShift(datum, logprobs[index]!.data as ArrayLike<number>, references?.[index]),
  );
  const { beta } = loss;
  const { value, slopes, origin } = loss.atAll(
    shifts.map(({ shift }, index) => ({ shift, desirable: desirable[index]! })),
  );
  const rewardOf = (wanted: boolean): number =>
    beta * meanOf(shifts.flatMap(({ shift }, at) => (desirable[at] === wanted ? [shift] : [])));
  const isRight = ({ shift }: { readonly shift: number }, index: number): number =>
    Number(desirable[index] ? shift > origin : shift < origin);
  return {
    loss: value,
    gradients: shifts.map(({ weights }, index) =>
      Float64Array.from(weights, (weight) => slopes[index]! * weight),
    ),
    metrics: {
      accuracy: meanOf(shifts.map(isRight)),
      margin: rewardOf(true) - rewardOf(false),
      chosen_reward: rewardOf(true),
      rejected_reward: rewardOf(false),
      [`${loss.name}_loss`]: value,
    },
  };
}

/** How often and by how much the chosen completions win. */
export function preferenceMetrics(
  pairs: readonly Pick<PairShift, "chosen" | "rejected">[],
  beta: number,
): Numbers {
  return {
    accuracy: meanOf(pairs.map(({ chosen, rejected }) => Number(chosen > rejected))),
    margin: meanOf(pairs.map(({ chosen, rejected }) => beta * (chosen - rejected))),
    chosen_reward: meanOf(pairs.map(({ chosen }) => beta * chosen)),
    rejected_reward: meanOf(pairs.map(({ rejected }) => beta * rejected)),
  };
}

/** The weighted sum of a datum's log-probabilities, less the reference's. */
export function weightedShift(
  datum: Datum,
  logprobs: ArrayLike<number>,
  reference: Reference | undefined,
): { readonly shift: number; readonly tokens: number; readonly weights: ArrayLike<number> } {
  const weights = datum.lossFnInputs["weights"]!.toDense().data as ArrayLike<number>;
  if (typeof reference === "object" && reference.length !== weights.length) {
    throw new ArgumentError(
      "references",
      `must have ${weights.length} entries, got ${reference.length}`,
    );
  }
  const ofToken = typeof reference === "object" ? reference : undefined;
  let shift = typeof reference === "number" ? -reference : 0;
  let tokens = 0;
  for (let at = 0; at < weights.length; at++) {
    if (weights[at] === 0) continue;
    shift += weights[at]! * (logprobs[at]! - (ofToken?.[at] ?? 0));
    tokens++;
  }
  return { shift, tokens, weights };
}

function needReferences(
  { needsReference }: { readonly needsReference: boolean },
  references: readonly Reference[] | undefined,
): void {
  if (needsReference && !references) throw new ArgumentError("references", "the loss needs them");
}

function ofMargin(
  margin: number,
  scale: number,
  at: (margin: number) => readonly [value: number, slope: number],
): PairSlope {
  const [value, slope] = at(margin);
  return { value, byChosen: scale * slope, byRejected: -scale * slope };
}

/** -log sigmoid(x), without overflow on either side. */
function softplusLoss(x: number): readonly [value: number, slope: number] {
  return [Math.max(-x, 0) + Math.log1p(Math.exp(-Math.abs(x))), -sigmoid(-x)];
}

function sigmoid(x: number): number {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1);
}

function positive(name: string, value: number): number {
  if (value > 0) return value;
  throw new ArgumentError(name, `must be above 0, got ${value}`);
}
