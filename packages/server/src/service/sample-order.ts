import type { SampleResult } from "@tinker-ts/engine";
import { checkSamplingParams, type WireInput, type WireValue } from "tinker-ts/wire";
import { textTokens } from "../decoding/engine-pass.js";
import type { ModelFacts } from "../engine-port/engine-kit.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { badRequest } from "../errors/api-error.js";
import { readExtensions } from "./sampling-extensions.js";

type SampleRequest = WireValue<"SampleRequest">;

const maxTopkPromptLogprobs = 1024;
const maxStops = 1024;

/** Checks what can be checked without knowing the model. */
export function checkSampleRequest(request: SampleRequest, maxNumSamples: number): void {
  const { numSamples, topkPromptLogprobs: topk } = request;
  checkStops(request.samplingParams);
  // What is not of the API is looked at as it is: it may be large, and would be copied.
  const { unknownFields: _, ...params } = request.samplingParams;
  checkSamplingParams(params, "sampling_params");
  readExtensions(request.samplingParams);
  if (numSamples < 1 || numSamples > maxNumSamples) {
    throw badRequest("num_samples", `must be from 1 to ${maxNumSamples}, got ${numSamples}`);
  }
  if (topk < 0 || topk > maxTopkPromptLogprobs) {
    throw badRequest("topk_prompt_logprobs", `must be from 0 to ${maxTopkPromptLogprobs}`);
  }
  if (textTokens(request.prompt, "prompt").length === 0) {
    throw badRequest("prompt", "is empty; send at least one token");
  }
}

/** Before each of them is looked at. */
function checkStops({ stop }: WireValue<"SamplingParams">): void {
  if (!Array.isArray(stop) || stop.length <= maxStops) return;
  throw badRequest(
    "sampling_params.stop",
    `has ${stop.length} entries; at most ${maxStops} are taken`,
  );
}

/** Turns a request into what the engine is asked for; refuses what this model cannot do. */
export function toSampleOrder(request: SampleRequest, facts: ModelFacts): SampleOrder {
  const { samplingParams: params } = request;
  const prompt = textTokens(request.prompt, "prompt");
  checkTokens(prompt, facts.vocabSize);
  const room = facts.contextLength - prompt.length;
  // Asking for the probabilities of a prompt is asking for one token, which may not fit any more.
  const isAboutPrompt = request.promptLogprobs === true && params.maxTokens === 1;
  if (room < (isAboutPrompt ? 0 : 1)) {
    throw badRequest(
      "prompt",
      `has ${prompt.length} tokens, which leaves no room in the context of ${facts.contextLength}`,
    );
  }
  const maxTokens = params.maxTokens ?? room;
  if (maxTokens > room && !isAboutPrompt) {
    throw badRequest(
      "sampling_params.max_tokens",
      `${maxTokens} after a prompt of ${prompt.length} tokens is more than the context of ${facts.contextLength}; at most ${room} fit`,
    );
  }
  const stops = typeof params.stop === "string" ? [params.stop] : (params.stop ?? []);
  return {
    prompt,
    numSamples: request.numSamples,
    maxTokens: Math.min(maxTokens, room),
    temperature: params.temperature,
    topK: params.topK,
    topP: params.topP,
    seed: Number(BigInt.asUintN(53, BigInt(params.seed ?? 0))),
    stopTokens: stops.filter((stop) => typeof stop === "number"),
    stopStrings: stops.filter((stop) => typeof stop === "string"),
    promptLogprobs: request.promptLogprobs === true,
    topkPromptLogprobs: request.topkPromptLogprobs,
    ...readExtensions(params, facts.vocabSize),
  };
}

/** What the engine gave back, in the form of the API. */
export function toSampleResponse(result: SampleResult): WireInput<"SampleResponse"> {
  const { promptLogprobs, topkPromptLogprobs } = result;
  return {
    sequences: result.samples.map(({ tokens, logprobs, stopReason, topLogprobs: top }) => ({
      stopReason,
      tokens,
      logprobs,
      ...(top ? { unknownFields: { top_logprobs: top.map(toPairs) } } : {}),
    })),
    promptLogprobs: promptLogprobs
      ? Array.from(promptLogprobs, (value) => (Number.isNaN(value) ? null : value))
      : null,
    topkPromptLogprobs: topkPromptLogprobs?.map((row) => row && toPairs(row)) ?? null,
    promptCacheHitTokens: result.promptCacheHitTokens,
  };
}

/** The most probable tokens of a place, as the wire has them. */
export function toPairs(
  row: readonly { readonly token: number; readonly logprob: number }[],
): [number, number][] {
  return row.map(({ token, logprob }) => [token, logprob]);
}

function checkTokens(prompt: Int32Array, vocabSize: number): void {
  const bad = prompt.findIndex((token) => token < 0 || token >= vocabSize);
  if (bad >= 0) {
    throw badRequest(
      `prompt[${bad}]`,
      `token ${prompt[bad]} is not in the vocabulary of ${vocabSize} tokens`,
    );
  }
}
