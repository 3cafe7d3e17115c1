import { EngineError } from "../errors.js";

/** Settings of one optimizer step. */
export interface AdamOptions {
  readonly learningRate: number;
  /** @default 0.9 */
  readonly beta1?: number;
  /** @default 0.95 */
  readonly beta2?: number;
  /** @default 1e-12 */
  readonly eps?: number;
  /** Decoupled: scaled by the learning rate, not by the gradient. @default 0 */
  readonly weightDecay?: number;
  /** Largest norm of the whole gradient; 0 leaves it as it is. @default 0 */
  readonly gradClipNorm?: number;
}

/** Running averages of an optimizer. */
export interface AdamState {
  /** Steps taken. */
  step: number;
  readonly firstMoment: Float32Array;
  readonly secondMoment: Float32Array;
}

/** What a step did. */
export interface AdamReport {
  /** Norm of the gradient before clipping. */
  readonly gradientNorm: number;
  readonly updateNorm: number;
  /** Steps taken so far. */
  readonly step: number;
}

/** Checks the settings of a step and completes them. */
export function completeAdamOptions(options: AdamOptions): Required<AdamOptions> {
  const complete = {
    learningRate: options.learningRate,
    beta1: options.beta1 ?? 0.9,
    beta2: options.beta2 ?? 0.95,
    eps: options.eps ?? 1e-12,
    weightDecay: options.weightDecay ?? 0,
    gradClipNorm: options.gradClipNorm ?? 0,
  };
  for (const [name, value] of Object.entries(complete)) {
    const below = name === "beta1" || name === "beta2" ? 1 : Infinity;
    if (!Number.isFinite(value) || value < 0 || value >= below) {
      const range = below === 1 ? "from 0 up to but not including 1" : "0 or above and finite";
      throw new EngineError("invalid_optimizer", `${name} is ${value}; it must be ${range}.`);
    }
  }
  return complete;
}

/** The Euclidean norm, summed in double precision. */
export function normOf(values: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += (values[i] ?? 0) ** 2;
  return Math.sqrt(sum);
}

/**
 * One step of AdamW in place; arithmetic is in double precision, rounded once per stored value. A gradient
 * that is not finite is refused before anything changes: it would spoil the parameters for good.
 */
export function adamStep(
  parameters: Float32Array,
  gradient: Float32Array,
  state: AdamState,
  options: Required<AdamOptions>,
): AdamReport {
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = options;
  const { firstMoment, secondMoment } = state;
  const gradientNorm = normOf(gradient);
  if (!Number.isFinite(gradientNorm)) throw notFinite(gradientNorm);
  const clip =
    gradClipNorm > 0 && gradientNorm > gradClipNorm ? gradClipNorm / (gradientNorm + 1e-6) : 1;
  state.step += 1;
  const firstScale = 1 / (1 - beta1 ** state.step);
  const secondScale = 1 / (1 - beta2 ** state.step);
  const decay = learningRate * weightDecay;
  let updateSum = 0;
  for (let i = 0; i < parameters.length; i++) {
    const g = (gradient[i] ?? 0) * clip;
    const first = beta1 * (firstMoment[i] ?? 0) + (1 - beta1) * g;
    const second = beta2 * (secondMoment[i] ?? 0) + (1 - beta2) * g * g;
    firstMoment[i] = first;
    secondMoment[i] = second;
    const before = parameters[i] ?? 0;
    const scaleOfGradient = Math.sqrt(second * secondScale) + eps;
    const direction = scaleOfGradient === 0 ? 0 : (first * firstScale) / scaleOfGradient;
    const update = -(learningRate * direction + decay * before);
    parameters[i] = before + update;
    updateSum += update * update;
  }
  return { gradientNorm, updateNorm: Math.sqrt(updateSum), step: state.step };
}

function notFinite(norm: number): EngineError {
  return new EngineError(
    "not_finite",
    `the norm of the gradient is ${norm}. The step was not taken and the gradient is dropped; check that ` +
      "weights, advantages and learning rates are of a moderate size.",
  );
}
