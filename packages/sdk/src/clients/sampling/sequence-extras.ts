import type { Tokenizer } from "@tinker-ts/hub";
import { liftTopLogprobs } from "../../types/sampling-extensions.js";
import { ResultError } from "../../errors/request-failed-error.js";
import type { Operation } from "../../futures/operation.js";
import type { SampledSequence, SampleResponse } from "../../types/sampling.js";
import type { SampleCall } from "./sample-call.js";

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
