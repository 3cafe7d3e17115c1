import { randomInt } from "node:crypto";
import type { Grammar } from "../constrain/grammar.js";
import { EngineError } from "../errors.js";
import { checkTokens } from "../model/tokens.js";
import type { ModelConfig } from "../model/model-config.js";

/** Options of generation from a prompt. */
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
  /** Random seed; sample i of a seed is always the same. @default random */
  readonly seed?: number;
  /** Which sample of its seed is the first: calls for parts of many samples give the same as one. @default 0 */
  readonly firstSample?: number;
  /** Who asks: scopes share the time of the steps, and find no prompts remembered for others. @default "" */
  readonly cacheScope?: string;
  /** Tokens after which a sample ends; they are part of it. @default [] */
  readonly stopTokens?: readonly number[];
  /** Texts after which a sample ends; the token that completes one is part of it. @default [] */
  readonly stopStrings?: readonly string[];
  /** Also give the log-probability of every prompt token. @default false */
  readonly promptLogprobs?: boolean;
  /** Also give the most likely tokens at every prompt position. @default 0 */
  readonly topkPromptLogprobs?: number;
  /** Of the prompt's positions score only this many at its end; goes with promptLogprobs. @default all */
  readonly promptLogprobsLastN?: number;
  /** Also give the log-probabilities of these tokens at prompt positions. @default none */
  readonly promptTargets?: PromptTargets;
  /** Also draw this many tokens, with replacement, at every prompt position but the first. @default 0 */
  readonly promptAlternatives?: number;
  /** Also give this many of the most likely tokens for every token generated. @default 0 */
  readonly topLogprobs?: number;
  /** Also give the log-probabilities of exactly these tokens for every token generated. @default [] */
  readonly logprobTokens?: readonly number[];
  /**
   * Which log-probabilities generated tokens have: "processed" those at the temperature they were drawn at,
   * "raw" those at temperature 1. @default "processed"
   */
  readonly logprobsMode?: "processed" | "raw";
  /** Draw among tokens at least this part as likely as the most likely one. @default 0 */
  readonly minP?: number;
  /** Subtracted from a token's logit for every time it was generated. @default 0 */
  readonly frequencyPenalty?: number;
  /** Subtracted from a token's logit once it was generated. @default 0 */
  readonly presencePenalty?: number;
  /** Divides positive and multiplies negative logits of tokens that were read or generated. @default 1 */
  readonly repetitionPenalty?: number;
  /** Added to the logits of tokens. @default none */
  readonly logitBias?: ReadonlyMap<number, number>;
  /** Tokens before which neither stop tokens nor stop strings end a sample. @default 0 */
  readonly minTokens?: number;
  /** Constraint on the text of a sample; stop tokens are allowed once the text is complete. @default any */
  readonly constraint?: SampleConstraint;
}

/** Tokens to score at the positions of a prompt. */
export interface PromptTargets {
  /** Where the tokens of each position but the first start, and where those of the last one end. */
  readonly rowStarts: Int32Array;
  /** Those of one position behind those of the one before; -1 for none. */
  readonly tokens: Int32Array;
}

/** A grammar for the texts of samples. */
export interface SampleConstraint {
  /** The grammar, or its JSON text, which is faster to send to the engine's thread. */
  readonly grammar: Grammar | string;
  /** Special tokens that the grammar may spell; others are never sampled. @default [] */
  readonly textTokens?: readonly number[];
}

/** Options that have been checked and completed. */
export interface CheckedSampleOptions extends Required<
  Omit<
    SampleOptions,
    "prompt" | "stopTokens" | "constraint" | "promptTargets" | "promptLogprobsLastN"
  >
> {
  readonly prompt: Int32Array;
  readonly promptTargets: PromptTargets | null;
  readonly promptLogprobsLastN: number | null;
  readonly stopTokens: ReadonlySet<number>;
  readonly constraint: SampleConstraint | null;
}

const maxSamples = 4096;
const maxTopK = 1024;
const maxPenalty = 100;
/** Limits on the number of stop strings and on their characters. */
const [maxStopStrings, maxStopCharacters] = [1024, 65_536];

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
    firstSample: options.firstSample ?? 0,
    cacheScope: options.cacheScope ?? "",
    stopTokens: new Set(options.stopTokens ?? []),
    stopStrings: options.stopStrings ?? [],
    promptLogprobs: options.promptLogprobs ?? false,
    topkPromptLogprobs: options.topkPromptLogprobs ?? 0,
    promptLogprobsLastN: options.promptLogprobsLastN ?? null,
    promptTargets: options.promptTargets ?? null,
    promptAlternatives: options.promptAlternatives ?? 0,
    topLogprobs: options.topLogprobs ?? 0,
    logprobTokens: options.logprobTokens ?? [],
    logprobsMode: options.logprobsMode ?? "processed",
    minP: options.minP ?? 0,
    frequencyPenalty: options.frequencyPenalty ?? 0,
    presencePenalty: options.presencePenalty ?? 0,
    repetitionPenalty: options.repetitionPenalty ?? 1,
    logitBias: options.logitBias ?? new Map<number, number>(),
    minTokens: options.minTokens ?? 0,
    constraint: options.constraint ?? null,
  };
  wholeNumber("numSamples", checked.numSamples, 1, maxSamples);
  wholeNumber("firstSample", checked.firstSample, 0, Number.MAX_SAFE_INTEGER);
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
  const { length: stops } = checked.stopStrings;
  if (stops > maxStopStrings) throw invalid("stopStrings", stops, `at most ${maxStopStrings}`);
  const characters = checked.stopStrings.reduce((sum, stop) => sum + stop.length, 0);
  if (characters > maxStopCharacters) {
    throw invalid("stopStrings", `${characters} characters`, `at most ${maxStopCharacters}`);
  }
  wholeNumber("promptAlternatives", checked.promptAlternatives, 0, maxTopK);
  checkLastN(checked);
  if (checked.promptTargets) {
    checkTargets(checked.promptTargets, checked.prompt.length, config.vocabSize);
  }
  wholeNumber("topLogprobs", checked.topLogprobs, 0, maxTopK);
  wholeNumber("minTokens", checked.minTokens, 0, Number.MAX_SAFE_INTEGER);
  numberInRange("minP", checked.minP, 0, 1);
  numberInRange("frequencyPenalty", checked.frequencyPenalty, -maxPenalty, maxPenalty);
  numberInRange("presencePenalty", checked.presencePenalty, -maxPenalty, maxPenalty);
  numberInRange("repetitionPenalty", checked.repetitionPenalty, 1 / maxPenalty, maxPenalty);
  for (const token of checked.logprobTokens) {
    wholeNumber("logprobTokens", token, 0, config.vocabSize - 1);
  }
  for (const [token, bias] of checked.logitBias) {
    wholeNumber("logitBias", token, 0, config.vocabSize - 1);
    numberInRange(`logitBias of token ${token}`, bias, -1000, 1000);
  }
  return checked;
}

function checkLastN({
  prompt,
  promptLogprobs,
  promptLogprobsLastN: last,
}: Pick<CheckedSampleOptions, "prompt" | "promptLogprobs" | "promptLogprobsLastN">): void {
  if (last === null) return;
  if (!promptLogprobs) throw invalid("promptLogprobs", false, "true with promptLogprobsLastN");
  wholeNumber("promptLogprobsLastN", last, 1, prompt.length - 1);
}

function checkTargets(
  { rowStarts, tokens }: PromptTargets,
  promptLength: number,
  vocabSize: number,
): void {
  const isStaircase =
    rowStarts.length === promptLength &&
    rowStarts[0] === 0 &&
    rowStarts.at(-1) === tokens.length &&
    rowStarts.every((start, row) => row === 0 || start >= (rowStarts[row - 1] ?? 0));
  if (!isStaircase) {
    const wanted = `${promptLength} numbers that rise from 0 to ${tokens.length}`;
    throw invalid("promptTargets.rowStarts", `${rowStarts.length} numbers`, wanted);
  }
  for (const token of tokens) wholeNumber("promptTargets.tokens", token, -1, vocabSize - 1);
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
