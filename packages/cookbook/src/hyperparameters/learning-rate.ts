import path from "node:path";
import { ArgumentError } from "tinker-ts";
import { modelSizes, readModelFolder, typeOfConfig } from "./model-sizes.js";

/** Options of a recommended learning rate. */
export interface LearningRateOptions {
  /**
   * An adapter is trained; all parameters take a tenth of the rate.
   * @default true
   */
  readonly isLora?: boolean | undefined;
  /** The width of the hidden states, for models that are not in the table; see `config.json`. */
  readonly hiddenSize?: number | undefined;
}

/** Exponent of the hidden size, by a part of the name or the `model_type` of a model. */
const exponents = [
  // Not calibrated: the flatter of the two calibrated ones, with lower rates for small models.
  [/minicpm5|lfm2|granite-4|granitemoehybrid|olmo-?3|ministral-?3/, 0.0775],
  [/llama/, 0.781],
  [/qwen/, 0.0775],
] as const;

/** Small models that were tested individually; the formula does not cover their sizes. */
const measured: Readonly<Record<string, number>> = { "tinker-ts/sprout": 5e-3 };

/** Known families without a calibrated learning rate. */
const notCalibrated = [
  /^thinkingmachines\/Inkling/,
  /^deepseek-ai\/DeepSeek-V3\.1$/,
  /^openai\/gpt-oss-(20|120)b$/,
  /^moonshotai\/Kimi-K2\.6$/,
  /^nvidia\/NVIDIA-Nemotron-3/,
];

/** The recommended learning rate for a model, by name or folder; it does not depend on the rank. */
export function recommendedLearningRate(model: string, options: LearningRateOptions = {}): number {
  const { isLora = true } = options;
  const known = Object.hasOwn(measured, model) ? measured[model] : undefined;
  if (known !== undefined) return isLora ? known : known / 10;
  const folder = readModelFolder(model);
  // Only the last name of a folder counts: parent folders may have any name.
  const name = folder ? `${path.basename(model)} ${typeOfConfig(folder)}` : model;
  const exponent = exponents.find(([pattern]) => pattern.test(name.toLowerCase()))?.[1];
  if (exponent === undefined) {
    const isKnown = notCalibrated.some((pattern) => pattern.test(model));
    throw new ArgumentError(
      "model",
      isKnown
        ? `no learning rate has been calibrated for ${model} yet; choose one, 1e-4 is a careful start`
        : `${model} is of a family without a known learning rate; choose one, 1e-4 is a careful start`,
    );
  }
  const hiddenSize = options.hiddenSize ?? modelSizes(model)?.hiddenSize;
  if (hiddenSize === undefined) {
    throw new ArgumentError(
      "hiddenSize",
      `the size of ${model} is not known here; pass it, or choose a learning rate`,
    );
  }
  return 5e-5 * (isLora ? 10 : 1) * (2000 / hiddenSize) ** exponent;
}

/** Scales a learning rate from one model to another: rates are inverse to the square root of the parameter count. */
export function transferLearningRate(
  learningRate: number,
  counts: { readonly fromParameters: number; readonly toParameters: number },
): number {
  return learningRate * Math.sqrt(counts.fromParameters / counts.toParameters);
}

/** Scales a learning rate from one batch size to another, for small batches. */
export function scaleLearningRate(
  learningRate: number,
  sizes: { readonly fromBatchSize: number; readonly toBatchSize: number },
): number {
  return learningRate * Math.sqrt(sizes.toBatchSize / sizes.fromBatchSize);
}
