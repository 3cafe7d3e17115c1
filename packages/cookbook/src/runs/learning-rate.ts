import { recommendedLearningRate } from "../hyperparameters/index.js";

/** The recommended learning rate of a model, or undefined for a family without one. */
function knownRate(model: string): number | undefined {
  try {
    return recommendedLearningRate(model);
  } catch {
    return undefined;
  }
}

/** The default rate of a loop: a share of the rate recommended for the model, or a fixed rate for other families. */
export function defaultLearningRate(
  model: string,
  { share = 1, otherwise }: { readonly share?: number; readonly otherwise: number },
): number {
  const known = knownRate(model);
  return known === undefined ? otherwise : known * share;
}

/** What loops take for families without a rate. */
const fallbacks: readonly number[] = [1e-4, 2e-5];

/** How far from the recommended rate a rate may be, up and down. */
const [highest, lowest] = [20, 1e-4];
const unknownRange = [1e-9, 0.1] as const;

/** A warning about a learning rate that is a guess or cannot work, or undefined. */
export function learningRateWarning(model: string, learningRate: number): string | undefined {
  const known = knownRate(model);
  const [least, most] = known ? [known * lowest, known * highest] : unknownRange;
  if (known === undefined && fallbacks.includes(learningRate)) {
    return `no learning rate is recommended for ${model}; ${learningRate} is a careful start`;
  }
  if (learningRate >= least && learningRate <= most) return undefined;
  const advice = known
    ? `the recommended rate for ${model} is ${known.toPrecision(2)}`
    : "usual rates are between 1e-5 and 1e-3";
  return learningRate > most
    ? `learning rate ${learningRate} is so high that training will probably diverge; ${advice}`
    : `learning rate ${learningRate} is so low that the model will hardly change; ${advice}`;
}
