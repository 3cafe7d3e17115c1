import { ArgumentError } from "tinker-ts";
import { reducePositions, type Reduction } from "../reduction.js";
import { termWithSides, type SideSource, type Term } from "../term.js";
import {
  existingSlots,
  modelCells,
  needCandidates,
  referenceCells,
  type Candidates,
  type Cells,
} from "./candidate-cells.js";

/** Options that all terms over candidates share. */
export interface CandidateOptions {
  /**
   * How the candidates become a distribution.
   * @default "bucket"
   */
  readonly candidates?: Candidates;
  /** 0 for candidates that do not exist, in the layout of the log-probabilities; all exist by default. */
  readonly exists?: SideSource;
  /**
   * How positions become one number.
   * @default "mean"
   */
  readonly reduction?: Reduction;
}

/** Options of `klDivergence`. */
export interface KlDivergenceOptions extends CandidateOptions {
  /** Log-probabilities of the same candidates under the reference, per datum. */
  readonly reference: SideSource;
  /**
   * `forward` is KL(model || reference), `reverse` is KL(reference || model), `symmetric` half of their sum.
   * @default "forward"
   */
  readonly direction?: "forward" | "reverse" | "symmetric";
}

/** The Kullback-Leibler divergence between model and reference over candidates per position. */
export function klDivergence(options: KlDivergenceOptions): Term {
  const { direction = "forward" } = options;
  const divergence = { forward: forwardKl, reverse: reverseKl, symmetric: symmetricKl }[direction];
  if (!divergence) {
    throw new ArgumentError("direction", `must be forward, reverse or symmetric, got ${direction}`);
  }
  return divergenceTerm("klDivergence", options, divergence);
}

/** The Jensen-Shannon divergence between model and reference; between 0 and ln 2. */
export function jensenShannon(
  options: CandidateOptions & Pick<KlDivergenceOptions, "reference">,
): Term {
  return divergenceTerm("jensenShannon", options, jensenShannonOf);
}

/** Options of `entropy`. */
export interface EntropyOptions extends CandidateOptions {
  /** `maximize` is the exploration bonus, `minimize` sharpens. */
  readonly mode: "minimize" | "maximize";
  /**
   * Whether to divide by the logarithm of the number of candidates.
   * @default false
   */
  readonly normalize?: boolean;
  /**
   * Divides log-probabilities before they are renormalised over the candidates.
   * @default 1
   */
  readonly temperature?: number;
}

/** The entropy over candidates per position; the metric `entropy` is always the entropy itself. */
export function entropy(options: EntropyOptions): Term {
  const {
    mode,
    candidates = "bucket",
    exists,
    reduction = "mean",
    normalize = false,
    temperature = 1,
  } = options;
  if (mode !== "minimize" && mode !== "maximize") {
    throw new ArgumentError("mode", `must be minimize or maximize, got ${String(mode)}`);
  }
  if (!(temperature > 0))
    throw new ArgumentError("temperature", `must be above 0, got ${temperature}`);
  if (temperature !== 1 && candidates === "bucket") {
    throw new ArgumentError(
      "candidates",
      'a temperature needs "renormalize" or "all": a bucket has no logit',
    );
  }
  const sign = mode === "maximize" ? -1 : 1;
  return termWithSides({ exists }, (batch, sides) => {
    const result = reducePositions(
      batch,
      reduction,
      ({ datum, start, width }, logprobs, gradient) => {
        needCandidates(width, "entropy");
        const slots = existingSlots(start, width, sides.exists?.[datum]);
        const cells = modelCells(logprobs, slots, candidates, temperature);
        if (cells.logs.length < 2) return 0;
        const unit = sign / (normalize ? Math.log(cells.logs.length) : 1);
        const byCell = cells.logs.map((log, cell) => -unit * weigh(cells.probs[cell]!, log + 1));
        cells.pullBack(byCell, gradient);
        return -unit * sumOver(cells, (log) => log);
      },
    );
    return { ...result, metrics: { entropy: sign * result.value } };
  });
}

/** A divergence on cells: its value and its derivative by the model's log-probabilities. */
type Divergence = (
  model: Cells,
  reference: Cells,
) => readonly [value: number, byCell: Float64Array];

export const forwardKl: Divergence = (model, reference) => [
  sumOver(model, (log, cell) => log - reference.logs[cell]!),
  model.logs.map((log, cell) => weigh(model.probs[cell]!, log - reference.logs[cell]! + 1)),
];

export const reverseKl: Divergence = (model, reference) => [
  sumOver(reference, (log, cell) => log - model.logs[cell]!),
  reference.probs.map((prob) => -prob),
];

export const symmetricKl: Divergence = (model, reference) => {
  const [forward, byForward] = forwardKl(model, reference);
  const [reverse, byReverse] = reverseKl(model, reference);
  return [(forward + reverse) / 2, byForward.map((value, cell) => (value + byReverse[cell]!) / 2)];
};

const jensenShannonOf: Divergence = (model, reference) => {
  const middle = model.probs.map((prob, cell) => Math.log((prob + reference.probs[cell]!) / 2));
  const value =
    sumOver(model, (log, cell) => log - middle[cell]!) +
    sumOver(reference, (log, cell) => log - middle[cell]!);
  return [
    value / 2,
    model.logs.map((log, cell) => weigh(model.probs[cell]!, log - middle[cell]!) / 2),
  ];
};

function divergenceTerm(
  name: string,
  {
    reference,
    candidates = "bucket",
    exists,
    reduction = "mean",
  }: CandidateOptions & { reference: SideSource },
  divergence: Divergence,
): Term {
  return termWithSides({ reference, exists }, (batch, sides) => {
    let largest = 0;
    const result = reducePositions(
      batch,
      reduction,
      ({ datum, start, width }, logprobs, gradient) => {
        needCandidates(width, name);
        const slots = existingSlots(start, width, sides.exists?.[datum]);
        const cells = modelCells(logprobs, slots, candidates);
        const there = Array.from(
          { length: width },
          (_, slot) => sides.reference![datum]![start + slot]!,
        );
        const [value, byCell] = divergence(cells, referenceCells(there, slots, candidates));
        cells.pullBack(byCell, gradient);
        largest = Math.max(largest, value);
        return value;
      },
    );
    return { ...result, metrics: { max: largest } };
  });
}

/** A product in which nothing times anything is nothing, also where the logarithm is infinite. */
function weigh(prob: number, value: number): number {
  return prob === 0 ? 0 : prob * value;
}

function sumOver(cells: Cells, at: (log: number, cell: number) => number): number {
  return cells.logs.reduce((sum, log, cell) => sum + weigh(cells.probs[cell]!, at(log, cell)), 0);
}
