import { EngineError } from "../errors.js";
import type { Program, ProgramCache } from "../execution/program.js";
import { messageOf } from "../execution/native-calls.js";
import { at } from "../util/arrays.js";
import { adamUpdate, nextName, type AdamSetting } from "./graphs/adam.js";

/** Parameters that are updated at once: their arrays stay in the caches from one operator to the next. */
const chunkLength = 1 << 18;

/** Below the square root of every single-precision number but 0. */
const smallestDivisor = 1e-30;

/** Numbers up to this have squares that fit single precision, also the sum of a chunk of smaller ones. */
const largestSquared = 1e19;

/** Below this nothing overflows. */
const largestNumber = 1e38;

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
  /** Number of steps taken. */
  step: number;
  readonly firstMoment: Float32Array;
  readonly secondMoment: Float32Array;
  /** Upper bounds on first moments and parameters; they decide whether a step needs overflow checks. */
  largestMoment: number;
  largestValue: number;
}

/** An optimizer state with the given averages. */
export function adamState(
  parameters: Float32Array,
  { step, firstMoment, secondMoment }: Pick<AdamState, "step" | "firstMoment" | "secondMoment">,
): AdamState {
  const [largestMoment, largestValue] = [normOf(firstMoment), normOf(parameters)];
  return { step, firstMoment, secondMoment, largestMoment, largestValue };
}

/** The result of a step. */
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

/** The Euclidean norm in double precision; two sums need not wait for each other. */
export function normOf(values: Float32Array): number {
  const half = values.length >> 1;
  let lower = 0;
  let upper = 0;
  for (let i = 0; i < half; i++) {
    lower += (values[i] ?? 0) ** 2;
    upper += (values[half + i] ?? 0) ** 2;
  }
  if (values.length % 2 === 1) upper += (values.at(-1) ?? 0) ** 2;
  return Math.sqrt(lower + upper);
}

/** The arrays that a step replaces. */
interface AdamArrays {
  readonly values: Float32Array;
  readonly firstMoment: Float32Array;
  readonly secondMoment: Float32Array;
}

/**
 * One step of AdamW in place. A gradient that is not finite and a step that would lead to numbers that are
 * not are refused and change nothing: they would spoil the parameters for good. If the runtime fails during
 * the step, the arrays are changed in part, which the error `adapter_broken` reports.
 */
export async function adamStep(
  programs: ProgramCache,
  parameters: Float32Array,
  gradient: Float32Array,
  state: AdamState,
  options: Required<AdamOptions>,
): Promise<AdamReport> {
  const gradientNorm = normOf(gradient);
  if (!Number.isFinite(gradientNorm)) throw notFinite(gradientNorm);
  const settings = updateSettings(options, gradientNorm, state.step + 1);
  const after = largestAfter(state, settings, gradientNorm);
  const program = await programs.get("adam", adamUpdate);
  // Almost every step is known to be small. One that is not is tried on copies.
  const arrays = { ...state, values: parameters };
  const target = after.isSmall ? arrays : copyOf(arrays);
  const updateNorm = await update(program, settings, gradient, target).catch((error: unknown) => {
    throw after.isSmall ? adapterBroken(error) : error;
  });
  if (!after.isSmall) {
    const isFinite = Number.isFinite(updateNorm) && target.secondMoment.every(Number.isFinite);
    if (!isFinite) throw notTaken(options);
    arrays.values.set(target.values);
    arrays.firstMoment.set(target.firstMoment);
    arrays.secondMoment.set(target.secondMoment);
  }
  state.step += 1;
  state.largestMoment = after.moment;
  state.largestValue += updateNorm;
  return { gradientNorm, updateNorm, step: state.step };
}

/** Updates all arrays in place, chunk by chunk, and returns the norm of the update. */
async function update(
  program: Program,
  settings: Record<AdamSetting, Float32Array>,
  gradient: Float32Array,
  { values, firstMoment, secondMoment }: AdamArrays,
): Promise<number> {
  const updateSquares = new Float32Array(1);
  let updateSum = 0;
  for (let start = 0; start < values.length; start += chunkLength) {
    const part = (array: Float32Array): Float32Array => array.subarray(start, start + chunkLength);
    const chunk = {
      values: part(values),
      firstMoment: part(firstMoment),
      secondMoment: part(secondMoment),
    };
    await program.run(
      { ...settings, ...chunk, gradient: part(gradient) },
      {
        [nextName("values")]: chunk.values,
        [nextName("firstMoment")]: chunk.firstMoment,
        [nextName("secondMoment")]: chunk.secondMoment,
        updateSquares,
      },
      { length: chunk.values.length },
    );
    updateSum += at(updateSquares, 0);
  }
  return Math.sqrt(updateSum);
}

/** An upper bound on first moments after a step, and whether all its values are certain to be finite. */
function largestAfter(
  { largestMoment, largestValue }: AdamState,
  settings: Record<AdamSetting, Float32Array>,
  gradientNorm: number,
): { moment: number; isSmall: boolean } {
  const gradient = gradientNorm * at(settings.clip, 0);
  const moment =
    largestMoment * at(settings.beta1, 0) + gradient * Math.abs(at(settings.oneMinusBeta1, 0));
  const direction = moment / at(settings.eps, 0);
  const change = direction * at(settings.stepSize, 0) + largestValue * at(settings.decay, 0);
  // An infinite direction times a zero step size is NaN.
  const isSmall =
    direction < largestNumber &&
    Math.max(gradient, change * Math.sqrt(chunkLength)) < largestSquared;
  return { moment, isSmall };
}

function copyOf({ values, firstMoment, secondMoment }: AdamArrays): AdamArrays {
  return {
    values: values.slice(),
    firstMoment: firstMoment.slice(),
    secondMoment: secondMoment.slice(),
  };
}

/** The scalars of an update; the corrections of the moments' bias are folded into them. */
function updateSettings(
  options: Required<AdamOptions>,
  gradientNorm: number,
  step: number,
): Record<AdamSetting, Float32Array> {
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = options;
  const clips = gradClipNorm > 0 && gradientNorm > gradClipNorm;
  const secondScale = Math.sqrt(1 - beta2 ** step);
  return {
    clip: Float32Array.of(clips ? gradClipNorm / (gradientNorm + 1e-6) : 1),
    beta1: Float32Array.of(beta1),
    oneMinusBeta1: Float32Array.of(1 - beta1),
    beta2: Float32Array.of(beta2),
    oneMinusBeta2: Float32Array.of(1 - beta2),
    // Where there never was a gradient, 0 / 0 would not be a number.
    eps: Float32Array.of(Math.max(eps * secondScale, smallestDivisor)),
    stepSize: Float32Array.of((learningRate * secondScale) / (1 - beta1 ** step)),
    decay: Float32Array.of(learningRate * weightDecay),
  };
}

function adapterBroken(cause: unknown): EngineError {
  return new EngineError(
    "adapter_broken",
    `the optimizer step failed halfway (${messageOf(cause)}): only a part of the parameters ` +
      "has changed. Import a saved state, or create the adapter again.",
    { category: "internal", cause },
  );
}

function notTaken({ learningRate, weightDecay }: Required<AdamOptions>): EngineError {
  const [name, value] =
    weightDecay > 1 ? ["weightDecay", weightDecay] : ["learningRate", learningRate];
  return new EngineError(
    "step_not_finite",
    `${name} is ${value}: the step would lead to numbers that are not finite. It was not taken and the ` +
      "gradient is kept; take the step with a smaller one.",
  );
}

function notFinite(norm: number): EngineError {
  return new EngineError(
    "gradient_not_finite",
    `the norm of the gradient is ${norm}. The step was not taken and the gradient is dropped; check that ` +
      "weights, advantages and learning rates are of a moderate size.",
  );
}
