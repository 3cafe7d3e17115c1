import { randomInt } from "node:crypto";
import { EngineError } from "../errors.js";
import type { ModelConfig } from "../files/model-config.js";
import { checkTokens } from "../model/check-tokens.js";

/** What to generate from a prompt. */
export interface SampleOptions {
  readonly prompt: Int32Array | readonly number[];
  /** @default 1 */
  readonly numSamples?: number;
  /** Most tokens per sample. */
  readonly maxTokens: number;
  /** 0 always takes the most likely token. @default 1 */
  readonly temperature?: number;
  /** Draw among this many most likely tokens; 0 or -1 means all. @default 0 */
  readonly topK?: number;
  /** Draw among the most likely tokens that together have this probability. @default 1 */
  readonly topP?: number;
  /** Fixes what is drawn; sample i of a seed is always the same. @default random */
  readonly seed?: number;
  /** Tokens after which a sample ends; they are part of it. @default [] */
  readonly stopTokens?: readonly number[];
  /** Texts after which a sample ends; the token that completes one is part of it. @default [] */
  readonly stopStrings?: readonly string[];
  /** Also give the log-probability of every prompt token. @default false */
  readonly promptLogprobs?: boolean;
  /** Also give the most likely tokens at every prompt position. @default 0 */
  readonly topkPromptLogprobs?: number;
}

/** Options that have been checked and completed. */
export interface CheckedSampleOptions extends Required<
  Omit<SampleOptions, "prompt" | "stopTokens">
> {
  readonly prompt: Int32Array;
  readonly stopTokens: ReadonlySet<number>;
}

const maxSamples = 4096;
const maxTopK = 1024;

/** Checks sampling options and completes them. */
export function checkSampleOptions(
  config: ModelConfig,
  options: SampleOptions,
): CheckedSampleOptions {
  const checked = {
    prompt: checkTokens(config, options.prompt, "prompt"),
    numSamples: options.numSamples ?? 1,
    maxTokens: options.maxTokens,
    temperature: options.temperature ?? 1,
    topK: Math.max(0, options.topK ?? 0),
    topP: options.topP ?? 1,
    seed: options.seed ?? randomInt(2 ** 48 - 1),
    stopTokens: new Set(options.stopTokens ?? []),
    stopStrings: options.stopStrings ?? [],
    promptLogprobs: options.promptLogprobs ?? false,
    topkPromptLogprobs: options.topkPromptLogprobs ?? 0,
  };
  wholeNumber("numSamples", checked.numSamples, 1, maxSamples);
  wholeNumber("maxTokens", checked.maxTokens, 0, Number.MAX_SAFE_INTEGER);
  wholeNumber("topK", checked.topK, 0, Number.MAX_SAFE_INTEGER);
  wholeNumber("seed", checked.seed, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  wholeNumber("topkPromptLogprobs", checked.topkPromptLogprobs, 0, maxTopK);
  numberInRange("temperature", checked.temperature, 0, 1000);
  numberInRange("topP", checked.topP, 0, 1);
  for (const token of checked.stopTokens) wholeNumber("stopTokens", token, 0, config.vocabSize - 1);
  if (checked.stopStrings.includes("")) {
    throw invalid("stopStrings", "an empty string", "strings of at least one character");
  }
  return checked;
}

function wholeNumber(name: string, value: number, min: number, max: number): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw invalid(name, value, `a whole number from ${min} to ${max}`);
}

function numberInRange(name: string, value: number, min: number, max: number): void {
  if (value >= min && value <= max) return;
  throw invalid(name, value, `a number from ${min} to ${max}`);
}

function invalid(name: string, value: unknown, allowed: string): EngineError {
  return new EngineError("invalid_sampling", `${name} is ${String(value)}; it must be ${allowed}.`);
}
