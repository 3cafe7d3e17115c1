import { EngineError } from "../errors.js";
import type { ProgramCache } from "../execution/program-cache.js";
import type { Program } from "../execution/program.js";
import { at } from "../util/at.js";
import { updateByHand, type AdamArrays } from "./adam-by-hand.js";
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
  /** Steps taken. */
  step: number;
  readonly firstMoment: Float32Array;
  readonly secondMoment: Float32Array;
  /** No first moment and no parameter is larger than these; they only tell how much care a step needs. */
  largestMoment: number;
  largestValue: number;
}

/** An optimizer that goes on from given averages. */
export function adamState(
  parameters: Float32Array,
  { step, firstMoment, secondMoment }: Pick<AdamState, "step" | "firstMoment" | "secondMoment">,
): AdamState {
  const [largestMoment, largestValue] = [normOf(firstMoment), normOf(parameters)];
  return { step, firstMoment, secondMoment, largestMoment, largestValue };
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

/**
 * One step of AdamW in place. A gradient that is not finite and a step that would lead to numbers that are
 * not are refused and change nothing: they would spoil the parameters for good.
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
  // Almost every step is known to be small. One that is not can be taken back.
  const arrays = { ...state, values: parameters };
  const before = after.isSmall ? undefined : copyOf(arrays);
  const updateNorm = await update(programs, settings, parameters, gradient, state);
  if (before && !(Number.isFinite(updateNorm) && state.secondMoment.every(Number.isFinite))) {
    overwrite(arrays, before);
    throw notTaken(options);
  }
  state.step += 1;
  state.largestMoment = after.moment;
  state.largestValue += updateNorm;
  return { gradientNorm, updateNorm, step: state.step };
}

/**
 * Updates all arrays in place and returns the norm of the update. If the runtime fails at the first chunk,
 * nothing has changed; if it fails later, the rest is updated by hand, because a step must not be taken in
 * part.
 */
async function update(
  programs: ProgramCache,
  settings: Record<AdamSetting, Float32Array>,
  parameters: Float32Array,
  gradient: Float32Array,
  state: AdamState,
): Promise<number> {
  const program = await programs.get("adam", adamUpdate);
  const updateSquares = new Float32Array(1);
  let updateSum = 0;
  let failed = false;
  const spare = (): Float32Array => new Float32Array(Math.min(chunkLength, parameters.length));
  const spares = { values: spare(), firstMoment: spare(), secondMoment: spare() };
  for (let start = 0; start < parameters.length; start += chunkLength) {
    const part = (array: Float32Array): Float32Array => array.subarray(start, start + chunkLength);
    const arrays = {
      values: part(parameters),
      gradient: part(gradient),
      firstMoment: part(state.firstMoment),
      secondMoment: part(state.secondMoment),
    };
    if (!failed) {
      const before = firstOf(spares, arrays.values.length);
      overwrite(before, arrays);
      try {
        await updateChunk(program, settings, arrays, updateSquares);
      } catch (error) {
        overwrite(arrays, before);
        if (start === 0) throw error;
        failed = true;
      }
    }
    updateSum += failed ? updateByHand(settings, arrays) : at(updateSquares, 0);
  }
  return Math.sqrt(updateSum);
}

/** Results go to the arrays they are computed from. */
async function updateChunk(
  program: Program,
  settings: Record<AdamSetting, Float32Array>,
  arrays: AdamArrays,
  updateSquares: Float32Array,
): Promise<void> {
  await program.run(
    { ...settings, ...arrays },
    {
      [nextName("values")]: arrays.values,
      [nextName("firstMoment")]: arrays.firstMoment,
      [nextName("secondMoment")]: arrays.secondMoment,
      updateSquares,
    },
    { length: arrays.values.length },
  );
}

/** How large the first moments can be after a step, and whether all it computes surely stays finite. */
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
  // A direction without end is not a number even where the step along it has no length.
  const isSmall =
    direction < largestNumber &&
    Math.max(gradient, change * Math.sqrt(chunkLength)) < largestSquared;
  return { moment, isSmall };
}

/** What an update replaces. */
type Updated = Omit<AdamArrays, "gradient">;

function copyOf({ values, firstMoment, secondMoment }: Updated): Updated {
  return {
    values: values.slice(),
    firstMoment: firstMoment.slice(),
    secondMoment: secondMoment.slice(),
  };
}

function overwrite(target: Updated, source: Updated): void {
  target.values.set(source.values);
  target.firstMoment.set(source.firstMoment);
  target.secondMoment.set(source.secondMoment);
}

function firstOf({ values, firstMoment, secondMoment }: Updated, length: number): Updated {
  return {
    values: values.subarray(0, length),
    firstMoment: firstMoment.subarray(0, length),
    secondMoment: secondMoment.subarray(0, length),
  };
}

/** The numbers that an update takes; the corrections of the moments' bias are folded into them. */
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
