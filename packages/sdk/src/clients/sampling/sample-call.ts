import { ArgumentError } from "../../errors/argument-error.js";
import { checkOptions } from "../../errors/check-options.js";
import { ModelInput } from "../../types/model-input.js";
import { liftTopLogprobs, withExtensions } from "../../types/sampling-extensions.js";
import type { SampledSequence, SampleResponse, SamplingParams } from "../../types/sampling.js";
import { TensorData } from "../../types/tensor-data.js";
import { checkSamplingParams } from "../../types/validate.js";
import { type Operation, operationOptions } from "../../futures/operation.js";
import { samplingSource } from "../sampling-source.js";
import { sampleOptions, type SampleOptions } from "../sampling-client.js";
import type { Tokenizer } from "@tinker-ts/hub";
import { ResultError } from "../../errors/request-failed-error.js";

const knownOptions = [samplingSource, sampleOptions, operationOptions];

/** A checked sample request without its number. */
export interface SampleCall {
  readonly prompt: ModelInput;
  readonly numSamples: number;
  readonly samplingParams: SamplingParams;
  readonly promptLogprobs: boolean;
  readonly topkPromptLogprobs: number;
  readonly topkSampleLogprobs: number | null;
  readonly targetPromptLogprobs: TensorData | null;
  readonly promptAltTokensK: number | null;
  readonly promptLogprobsLastN: number | null;
}

/** Fills defaults in and refuses what cannot be sampled. */
export function checkSampleCall(options: SampleOptions): SampleCall {
  checkOptions(options, knownOptions);
  const { numSamples = 1, topkPromptLogprobs = 0 } = options;
  if (!Number.isSafeInteger(numSamples) || numSamples < 1) {
    throw new ArgumentError("numSamples", `must be a whole number of 1 or more, got ${numSamples}`);
  }
  checkCount("topkPromptLogprobs", topkPromptLogprobs);
  checkTokenizer(options.tokenizer);
  const prompt = readPrompt(options.prompt);
  if (prompt.chunks.every((chunk) => chunk.type === "encoded_text" && chunk.tokens.length === 0)) {
    throw new ArgumentError("prompt", "must not be empty; pass token ids or chunks");
  }
  return {
    prompt,
    numSamples,
    samplingParams: completeParams(options.samplingParams ?? {}),
    promptLogprobs: options.includePromptLogprobs ?? false,
    topkPromptLogprobs,
    topkSampleLogprobs: checkCount("topkSampleLogprobs", options.topkSampleLogprobs ?? 0) || null,
    targetPromptLogprobs: readTargets(options.targetPromptLogprobs),
    promptAltTokensK: checkCount("promptAltTokensK", options.promptAltTokensK ?? 0) || null,
    promptLogprobsLastN: checkLastN(options),
  };
}

function checkCount(name: string, value: number, least = 0): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new ArgumentError(name, `must be a whole number of ${least} or more, got ${value}`);
}

function checkLastN({
  promptLogprobsLastN: last,
  includePromptLogprobs,
}: SampleOptions): number | null {
  if (last === undefined) return null;
  if (includePromptLogprobs) return checkCount("promptLogprobsLastN", last, 1);
  throw new ArgumentError("promptLogprobsLastN", "goes with includePromptLogprobs: true");
}

function readTargets(given: SampleOptions["targetPromptLogprobs"]): TensorData | null {
  if (given === undefined) return null;
  const targets = given instanceof TensorData ? given : new TensorData(given);
  if (targets.dtype === "int64" && targets.shape?.length === 2) return targets;
  const wanted = "must be int64 token ids of shape [prompt length - 1, K]";
  throw new ArgumentError("targetPromptLogprobs", wanted);
}

type GivenParams = NonNullable<SampleOptions["samplingParams"]>;

let lastParams: { readonly given: GivenParams; readonly complete: SamplingParams } | undefined;

/**
 * Parameters with their defaults. Calls by the thousand have the same ones, and looking at each takes longer than
 * comparing them with the last, so that equal parameters are checked once and are the same object.
 */
function completeParams(given: GivenParams): SamplingParams {
  if (lastParams && haveSameFields(given, lastParams.given)) return lastParams.complete;
  const complete = checkSamplingParams(withExtensions(given));
  const stop = Array.isArray(given.stop) ? { stop: [...given.stop] } : {};
  // A copy: what was given may be changed for the next call.
  lastParams = isPlain(given) ? { given: { ...given, ...stop }, complete } : undefined;
  return complete;
}

function haveSameFields(given: GivenParams, known: GivenParams): boolean {
  return isPlain(given) && hasFieldsOf(given, known) && hasFieldsOf(known, given);
}

function hasFieldsOf(some: object, others: object): boolean {
  for (const name in others) {
    const value = (some as Record<string, unknown>)[name];
    const other = (others as Record<string, unknown>)[name];
    if (typeof value !== "object" || value === null ? value !== other : !isSameList(value, other)) {
      return false;
    }
  }
  return true;
}

function isSameList(list: unknown, other: unknown): boolean {
  return (
    Array.isArray(list) &&
    Array.isArray(other) &&
    list.length === other.length &&
    list.every((item, index) => typeof item !== "object" && item === other[index])
  );
}

/** Fields of others may hide behind a prototype, where they cannot be compared. */
function isPlain(given: unknown): boolean {
  return (
    typeof given === "object" && given !== null && Object.getPrototypeOf(given) === Object.prototype
  );
}

function checkTokenizer(tokenizer: unknown): void {
  if (tokenizer === undefined || tokenizer === null) return;
  if (typeof tokenizer === "object" && "decode" in tokenizer) return;
  throw new ArgumentError(
    "tokenizer",
    "must be a tokenizer; await getTokenizer() or loadTokenizer()",
  );
}

function readPrompt(value: SampleOptions["prompt"]): ModelInput {
  try {
    return ModelInput.from(value);
  } catch (error) {
    throw ArgumentError.within("prompt", error);
  }
}

/** Refuses an answer without a requested part: servers ignore options that they do not support. */
export function checkScores(
  call: SampleCall,
  response: SampleResponse,
  { status }: Operation,
): SampleResponse {
  const missing = missingPart(call, response);
  if (missing === undefined) return response;
  throw new ResultError(
    status.requestIds.at(-1) ?? "",
    `The answer lacks what ${missing} asks for; the server may be older than this option.`,
  );
}

/** The option without an answer; looked at for every sample, so that nothing is made. */
function missingPart(call: SampleCall, response: SampleResponse): string | undefined {
  if (call.promptLogprobs && !hasScores(response.promptLogprobs)) return "includePromptLogprobs";
  if (call.topkPromptLogprobs && !response.topkPromptLogprobs) return "topkPromptLogprobs";
  if (call.targetPromptLogprobs && !response.targetPromptLogprobs) return "targetPromptLogprobs";
  if (call.promptAltTokensK && !response.promptAltTokens) return "promptAltTokensK";
  if (!call.topkSampleLogprobs) return undefined;
  const isBare = response.sequences.some(({ topkLogprobs }) => !topkLogprobs);
  return isBare ? "topkSampleLogprobs" : undefined;
}

/** One token has no score; of more, servers that compute none leave them out or send nothing but gaps. */
export function hasScores(
  logprobs: readonly (number | null)[] | null,
): logprobs is (number | null)[] {
  return logprobs !== null && (logprobs.length < 2 || logprobs.some((value) => value !== null));
}

/**
 * Names sequences. The name is not among the fields that are listed: two draws of one seed are equal, and are two draws
 * all the same.
 */
export function nameSequences(
  sequences: readonly SampledSequence[],
  nameOf: (index: number) => string | undefined,
): void {
  for (let index = 0; index < sequences.length; index++) {
    hiddenName.value = nameOf(index);
    Object.defineProperty(sequences[index]!, "sequenceId", hiddenName);
  }
}

/** One for all: a sample takes less time than most of what could be made for it. */
const hiddenName: { value: string | undefined } = { value: undefined };

/** The tokenizer of a model once it has been loaded, shared by the clients of that model. */
export interface KnownTokenizer {
  current?: Tokenizer;
}

/**
 * Gives sequences their `text` and `topLogprobs`. Most who train never read the text, so that it is decoded
 * when it is read, and what walks over all fields (JSON, copies, messages to threads) does not.
 */
export function withExtras(
  response: SampleResponse,
  given: Tokenizer | null | undefined,
  known?: KnownTokenizer,
): SampleResponse {
  const tokenizer = given === undefined ? known?.current : given;
  for (const sequence of response.sequences) {
    if (sequence.unknownFields) liftTopLogprobs(sequence);
    if (!tokenizer) continue;
    let text: string | undefined;
    Object.defineProperty(sequence, "text", {
      get: () => (text ??= tokenizer.decode(sequence.tokens, { skipSpecialTokens: true })),
    });
  }
  return response;
}
