import type { SampleResult, TopTokens } from "@tinker-ts/engine";
import { checkSamplingParams, encodeProto, type WireInput, type WireValue } from "tinker-ts/wire";
import { textTokens } from "../workers/engine-pass.js";
import type { ModelFacts } from "../engine-port/engine-kit.js";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { badRequest } from "../errors/api-error.js";
import { checkScoreOptions, toPromptScores, toScoreOrder } from "./score-options.js";
import { readExtensions } from "./extensions.js";

type SampleRequest = WireValue<"SampleRequest">;

const maxStops = 1024;
/** Of a cell that no token is for. */
const undefinedLogprob = -99999;

/** Checks what can be checked without knowing the model. */
export function checkSampleRequest(request: SampleRequest, maxNumSamples: number): void {
  const { numSamples } = request;
  checkStops(request.samplingParams);
  // What is not of the API is looked at as it is: it may be large, and would be copied.
  const { unknownFields: _, ...params } = request.samplingParams;
  checkSamplingParams(params, "sampling_params");
  readExtensions(request.samplingParams);
  if (numSamples < 1 || numSamples > maxNumSamples) {
    throw badRequest("num_samples", `must be from 1 to ${maxNumSamples}, got ${numSamples}`);
  }
  const { length } = textTokens(request.prompt, "prompt");
  if (length === 0) throw badRequest("prompt", "is empty; send at least one token");
  checkScoreOptions(request, length);
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
  const extensions = readExtensions(params, facts.vocabSize);
  const scores = toScoreOrder(request, facts.vocabSize);
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
    ...extensions,
    ...scores,
    // One list of the most probable tokens serves both.
    topLogprobs: Math.max(extensions.topLogprobs ?? 0, scores.topLogprobs ?? 0),
  };
}

/** What the engine gave back, in the form of the API. */
export function toSampleResponse(
  request: SampleRequest,
  result: SampleResult,
): WireInput<"SampleResponse"> {
  const { promptLogprobs, topkPromptLogprobs } = result;
  const { topkSampleLogprobs: topk } = request;
  const extended = readExtensions(request.samplingParams).topLogprobs ?? 0;
  return {
    sequences: result.samples.map(({ tokens, logprobs, stopReason, topLogprobs = [] }) => ({
      stopReason,
      tokens,
      logprobs,
      topkLogprobs: topk === null ? null : topLogprobs.map((row) => topCells(row, topk)),
      ...(extended > 0
        ? { unknownFields: { top_logprobs: topLogprobs.map((row) => toPairs(row, extended)) } }
        : {}),
    })),
    promptLogprobs: promptLogprobs
      ? Array.from(promptLogprobs, (value) => (Number.isNaN(value) ? null : value))
      : null,
    topkPromptLogprobs: topkPromptLogprobs?.map((row) => row && toPairs(row)) ?? null,
    promptCacheHitTokens: result.promptCacheHitTokens,
    ...toPromptScores(request, result),
  };
}

/** The response in its binary form, made sequence by sequence: parts of a message add up to the whole. */
export function* encodedResponse(
  request: SampleRequest,
  result: SampleResult,
): Generator<void, Uint8Array, void> {
  const parts: Uint8Array[] = [];
  for (const sample of result.samples) {
    const alone = { samples: [sample], promptCacheHitTokens: 0 };
    const { sequences } = toSampleResponse(plainRequest(request), alone);
    parts.push(encodeProto("SampleResponse", { sequences }));
    yield;
  }
  parts.push(encodeProto("SampleResponse", toSampleResponse(request, { ...result, samples: [] })));
  return Buffer.concat(parts);
}

/** A request that asks nothing of its prompt. */
function plainRequest(request: SampleRequest): SampleRequest {
  return { ...request, targetPromptLogprobs: null, promptAltTokensK: null };
}

/** A row of as many cells as were asked for, also where the model has fewer tokens. */
function topCells(row: TopTokens, k: number): [number, number][] {
  const cells = toPairs(row, k);
  while (cells.length < k) cells.push([0, undefinedLogprob]);
  return cells;
}

/** The most probable tokens of a place, as the wire has them. */
export function toPairs(row: TopTokens, most = row.length): [number, number][] {
  return row.slice(0, most).map(({ token, logprob }) => [token, logprob]);
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
