import type { SampleResult } from "@tinker-ts/engine";
import { TensorData, type WireInput, type WireValue } from "tinker-ts/wire";
import type { SampleOrder } from "../engine-port/engine-port.js";
import { badRequest } from "../errors/api-error.js";

type SampleRequest = WireValue<"SampleRequest">;
type SampleResponse = WireInput<"SampleResponse">;

/** What is scored for a request beside what is sampled. */
type ScoreOrder = Pick<
  SampleOrder,
  "promptTargets" | "promptAlternatives" | "promptLogprobsLastN" | "topLogprobs"
>;

const maxTopkPromptLogprobs = 1024;
const maxTopkSampleLogprobs = 20;
const maxAltTokensK = 1024;
/** Of the prompt's length times the draws for each position. */
const maxAltTokens = 2 ** 20;
/** Of the prompt's length times the different tokens that are scored. */
const maxTargets = 2 ** 27;

/** Refuses options that are out of their bounds, as far as that shows without knowing the model. */
export function checkScoreOptions(request: SampleRequest, promptLength: number): void {
  checkRange("topk_prompt_logprobs", request.topkPromptLogprobs, maxTopkPromptLogprobs);
  checkRange("topk_sample_logprobs", request.topkSampleLogprobs ?? 0, maxTopkSampleLogprobs);
  const altTokensK = request.promptAltTokensK ?? 0;
  checkRange("prompt_alt_tokens_k", altTokensK, maxAltTokensK);
  if (altTokensK * promptLength > maxAltTokens) {
    const most = `${altTokensK} for a prompt of ${promptLength} tokens is too much`;
    throw badRequest("prompt_alt_tokens_k", `${most}; their product may be up to ${maxAltTokens}`);
  }
  checkLastN(request, promptLength);
  if (request.targetPromptLogprobs) checkTargets(request.targetPromptLogprobs, promptLength);
}

/** The options as the engine takes them; refuses tokens that the model does not have. */
export function toScoreOrder(request: SampleRequest, vocabSize: number): ScoreOrder {
  const { targetPromptLogprobs: targets, promptAltTokensK, promptLogprobsLastN } = request;
  if (targets) checkTargetTokens(targets, vocabSize);
  return {
    ...(targets ? { promptTargets: toTargets(targets) } : {}),
    ...(promptAltTokensK === null ? {} : { promptAlternatives: promptAltTokensK }),
    ...(promptLogprobsLastN === null ? {} : { promptLogprobsLastN }),
    ...(request.topkSampleLogprobs === null ? {} : { topLogprobs: request.topkSampleLogprobs }),
  };
}

/** What was scored of the prompt, in the form of the API. */
export function toPromptScores(
  { targetPromptLogprobs: targets, promptAltTokensK: k }: SampleRequest,
  result: SampleResult,
): Pick<SampleResponse, "targetPromptLogprobs" | "promptAltTokens"> {
  const { targetPromptLogprobs, promptAlternatives } = result;
  const isComplete =
    (targets === null || targetPromptLogprobs) && (k === null || promptAlternatives);
  if (!isComplete) throw new Error("the engine did not compute all that was asked of the prompt");
  const shapeOf = ({ length }: Int32Array): number[] => [length / (k ?? 1), k ?? 0];
  return {
    targetPromptLogprobs:
      targets && targetPromptLogprobs ? scoresOf(targets, targetPromptLogprobs) : null,
    promptAltTokens: promptAlternatives
      ? {
          tokens: new TensorData({
            data: promptAlternatives.tokens,
            shape: shapeOf(promptAlternatives.tokens),
          }),
          logprobs: new TensorData({
            data: promptAlternatives.logprobs,
            shape: shapeOf(promptAlternatives.tokens),
          }),
        }
      : null,
  };
}

/** Scores in the shape and layout of the tokens. */
function scoresOf(
  { shape, sparseCrowIndices, sparseColIndices }: TensorData,
  data: Float32Array,
): TensorData {
  return new TensorData({ data, shape, sparseCrowIndices, sparseColIndices });
}

function checkRange(field: string, value: number, most: number): void {
  if (value < 0 || value > most) throw badRequest(field, `must be from 0 to ${most}, got ${value}`);
}

function checkLastN(
  { promptLogprobs, promptLogprobsLastN: last }: SampleRequest,
  promptLength: number,
): void {
  if (last === null) return;
  const field = "prompt_logprobs_last_n";
  if (promptLogprobs !== true) throw badRequest(field, "needs prompt_logprobs; set that to true");
  if (last >= 1 && last < promptLength) return;
  const wanted =
    promptLength > 1
      ? `must be from 1 to ${promptLength - 1}, one less than the prompt has tokens`
      : "needs a prompt of at least 2 tokens";
  throw badRequest(field, `${wanted}, got ${last}`);
}

const targetsField = "target_prompt_logprobs";

function checkTargets({ data, dtype, shape }: TensorData, promptLength: number): void {
  if (dtype !== "int64") throw badRequest(targetsField, `must be int64, got ${dtype}`);
  if (shape?.length !== 2 || shape[0] !== promptLength - 1) {
    const wanted = `must have shape [${promptLength - 1}, K]: a row for each prompt token but the first`;
    throw badRequest(targetsField, `${wanted}, got [${(shape ?? [data.length]).join(", ")}]`);
  }
  const distinct = new Set<number | bigint>(data);
  distinct.delete(-1);
  distinct.delete(-1n);
  if (distinct.size === 0) throw badRequest(targetsField, "names no token id; leave it out");
  if (distinct.size * promptLength > maxTargets) {
    const much = `${distinct.size} different ids for a prompt of ${promptLength} tokens are too much`;
    throw badRequest(targetsField, `${much}; their product may be up to ${maxTargets}`);
  }
}

function checkTargetTokens({ data }: TensorData, vocabSize: number): void {
  for (const [index, token] of data.entries()) {
    if (token >= -1 && token < vocabSize) continue;
    throw badRequest(
      `${targetsField}.data[${index}]`,
      `token ${token} is not in the vocabulary of ${vocabSize} tokens; -1 asks for nothing`,
    );
  }
}

/** Dense rows are all of one width. */
function toTargets({ data, shape, sparseCrowIndices }: TensorData): {
  rowStarts: Int32Array;
  tokens: Int32Array;
} {
  const [rows = 0, width = 0] = shape ?? [];
  return {
    rowStarts: sparseCrowIndices ?? Int32Array.from({ length: rows + 1 }, (_, row) => row * width),
    tokens: Int32Array.from(data as Int32Array, Number),
  };
}
