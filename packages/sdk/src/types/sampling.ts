import {
  array,
  bigInteger,
  boolean,
  enumeration,
  floats,
  integer,
  literal,
  nullable,
  number,
  openObject,
  optional,
  pair,
  strictObject,
  string,
  tokens,
  union,
  withDefault,
  type InputOf,
  type ValueOf,
} from "../schema/schema.js";
import { ModelInputSchema } from "./model-input.js";

export const StopReason = enumeration(["length", "stop"]);
/** Why a sequence ended. */
export type StopReason = ValueOf<typeof StopReason>;

const chooseStop = (value: unknown): string | undefined => {
  if (typeof value === "string") return "text";
  if (!Array.isArray(value)) return undefined;
  return value.every((item) => typeof item === "string") ? "texts" : "token ids";
};

const Stop = union(
  "stop",
  { text: string, texts: array(string), "token ids": array(integer) },
  { choose: chooseStop, chooseWire: chooseStop },
);

export const SamplingParams = openObject("SamplingParams", {
  maxTokens: optional(integer),
  seed: optional(bigInteger),
  stop: optional(Stop),
  temperature: withDefault(number, 1),
  topK: withDefault(integer, -1),
  topP: withDefault(number, 1),
});
export type SamplingParams = ValueOf<typeof SamplingParams>;
export type SamplingParamsInput = InputOf<typeof SamplingParams>;

export const SampleRequest = strictObject("SampleRequest", {
  numSamples: withDefault(integer, 1),
  prompt: ModelInputSchema,
  samplingParams: SamplingParams,
  baseModel: optional(string),
  modelPath: optional(string),
  samplingSessionId: optional(string),
  seqId: optional(bigInteger),
  promptLogprobs: optional(boolean),
  topkPromptLogprobs: withDefault(integer, 0),
  type: literal("sample"),
});
export type SampleRequest = ValueOf<typeof SampleRequest>;

export const SampledSequence = openObject("SampledSequence", {
  stopReason: StopReason,
  tokens,
  /** Of the distribution drawn from: log softmax(logits / temperature), at temperature 0 log softmax(logits). */
  logprobs: optional(floats),
});
export type SampledSequence = ValueOf<typeof SampledSequence>;

export const SampleResponse = openObject("SampleResponse", {
  sequences: array(SampledSequence),
  type: literal("sample"),
  promptLogprobs: optional(array(nullable(number))),
  topkPromptLogprobs: optional(array(nullable(array(pair(integer, number))))),
  promptCacheHitTokens: withDefault(integer, 0, { since: "0.23.0" }),
});
export type SampleResponse = ValueOf<typeof SampleResponse>;

export const GetSamplerResponse = openObject(
  "GetSamplerResponse",
  { samplerId: string, baseModel: string, modelPath: optional(string) },
  { since: "0.5.1" },
);
export type GetSamplerResponse = ValueOf<typeof GetSamplerResponse>;
