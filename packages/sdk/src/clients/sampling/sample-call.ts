import { ArgumentError } from "../../errors/argument-error.js";
import { checkOptions } from "../../errors/check-options.js";
import { ModelInput } from "../../types/model-input.js";
import { withExtensions } from "../../types/sampling-extensions.js";
import type { SamplingParams } from "../../types/sampling.js";
import { checkSamplingParams } from "../../types/validate.js";
import { optionNames } from "../option-names.js";
import type { SampleOptions } from "../sampling-client.js";

/** A checked sample request without its number. */
export interface SampleCall {
  readonly prompt: ModelInput;
  readonly numSamples: number;
  readonly samplingParams: SamplingParams;
  readonly promptLogprobs: boolean;
  readonly topkPromptLogprobs: number;
}

/** Fills defaults in and refuses what cannot be sampled. */
export function checkSampleCall(options: SampleOptions): SampleCall {
  checkOptions(options, optionNames.sample);
  const { numSamples = 1, topkPromptLogprobs = 0 } = options;
  if (!Number.isSafeInteger(numSamples) || numSamples < 1) {
    throw new ArgumentError("numSamples", `must be a whole number of 1 or more, got ${numSamples}`);
  }
  if (!Number.isSafeInteger(topkPromptLogprobs) || topkPromptLogprobs < 0) {
    throw new ArgumentError("topkPromptLogprobs", "must be a whole number of 0 or more");
  }
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
  };
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
