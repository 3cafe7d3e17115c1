import {
  array,
  bigInteger,
  boolean,
  floats,
  integer,
  literal,
  mapped,
  measured,
  nullable,
  number,
  openEnumeration,
  openObject,
  optional,
  pair,
  strictObject,
  string,
  tokens,
  union,
  withDefault,
  type Field,
  type FieldInputs,
  type FieldValues,
  type KeepsUnknownFields,
  type OpenSchema,
  type OpenValues,
  type Schema,
  type SchemaOf,
  type ValueOf,
} from "../schema/schema.js";
import { ModelInputSchema } from "./model-input.js";
import { TensorDataSchema } from "./tensor-data.js";

export const StopReason = openEnumeration(["length", "stop"]);
/** Why a sequence ended; newer servers may know more reasons. */
export type StopReason = ValueOf<typeof StopReason>;

const chooseStop = (value: unknown): string | undefined => {
  if (typeof value === "string") return "text";
  if (!Array.isArray(value)) return undefined;
  return value.every((item) => typeof item === "string") ? "texts" : "token ids";
};

const Stop: Schema<string | readonly string[] | readonly number[]> = union(
  "stop",
  { text: string, texts: array(string), "token ids": array(integer) },
  { choose: chooseStop, chooseWire: chooseStop },
);

const samplingParams = {
  /** Most tokens to draw, at least 1; null leaves it to the server, which stops at the end of the context. */
  maxTokens: optional(integer),
  /** Makes the draw repeatable: same prompt, weights and seed, same tokens. Null draws anew each time. */
  seed: optional(bigInteger),
  /** Ends a sequence: a text, texts, or token ids. What completes it is part of the output. */
  stop: optional(Stop),
  /**
   * Divides the logits: below 1 is bolder, above 1 wilder, 0 always takes the most probable token.
   * @default 1
   */
  temperature: withDefault(number, 1),
  /**
   * Draws among this many most probable tokens only; -1 (or 0) among all, 1 is greedy.
   * @default -1
   */
  topK: withDefault(integer, -1),
  /**
   * Draws among the most probable tokens that together have this probability, above 0 and at most 1.
   * @default 1
   */
  topP: withDefault(number, 1),
};

/** How tokens are drawn. */
export interface SamplingParams extends OpenValues<typeof samplingParams> {}

/** How tokens are drawn, as it may be written: what is left out has its default. */
export interface SamplingParamsInput
  extends FieldInputs<typeof samplingParams>, KeepsUnknownFields {}
export const SamplingParams: Schema<SamplingParams, SamplingParamsInput> = openObject(
  "SamplingParams",
  samplingParams,
);

/**
 * A field that newer clients always send. At its default it reads as null and is not written, so that a request is
 * the same with it and without it.
 */
function unlessDefault<T>(
  name: string,
  schema: Schema<T>,
  standard: NoInfer<T>,
  since: string,
): Field<"optional", Schema<T | null, T | null>> {
  const value = mapped<T | null, T | null, T, T>(name, schema, {
    wrap: (given) => (given === standard ? null : given),
    unwrap: (given) => given ?? standard,
  });
  return optional(value, { since });
}

const sampleRequest = {
  /**
   * How many continuations.
   * @default 1
   */
  numSamples: withDefault(integer, 1),
  /** What to continue. */
  prompt: ModelInputSchema,
  /** How tokens are drawn. */
  samplingParams: SamplingParams,
  /** The base model to sample from, when there is no sampling session. */
  baseModel: optional(string),
  /** The saved weights to sample from, when there is no sampling session. */
  modelPath: optional(string),
  /** The sampling session to sample in. */
  samplingSessionId: optional(string),
  /** Number of the request within its session; the same number twice is the same sample. */
  seqId: optional(bigInteger),
  /** Also returns the logprob of every prompt token. */
  promptLogprobs: optional(boolean),
  /**
   * Also returns this many most probable tokens at every prompt position.
   * @default 0
   */
  topkPromptLogprobs: withDefault(integer, 0),
  /** Also returns this many most probable tokens at every sampled position. */
  topkSampleLogprobs: unlessDefault("integer", integer, 0, "0.29.0"),
  /** Token ids `[prompt length - 1, K]`, dense or CSR, to score: row i at prompt position i + 1; -1 asks for nothing. */
  targetPromptLogprobs: optional(TensorDataSchema, { since: "0.30.0" }),
  /** Also draws this many tokens, with replacement, at every prompt position but the first. */
  promptAltTokensK: unlessDefault("integer", integer, 0, "0.31.0"),
  /** Scores only this many positions at the end of the prompt; goes with `promptLogprobs`. */
  promptLogprobsLastN: optional(integer, { since: "0.33.0" }),
  /** Sent by the official client; without an effect. */
  recordStabilityInfo: unlessDefault("boolean", boolean, false, "0.26.2"),
  /** Marks the request. */
  type: literal("sample"),
};

/** Asks for continuations of a prompt. */
export interface SampleRequest extends FieldValues<typeof sampleRequest> {}
export const SampleRequest: SchemaOf<SampleRequest, typeof sampleRequest> = strictObject(
  "SampleRequest",
  sampleRequest,
);

/** A token's id and its logprob. */
export type TokenLogprob = readonly [token: number, logprob: number];

const topkRows = array(nullable(array(pair(integer, number))));

/** The text is made here, and top logprobs are an addition of this project: neither is part of the API. */
const sampledSequence = {
  /** Why it ended. */
  stopReason: StopReason,
  /** The drawn token ids, without the prompt. */
  tokens,
  /** Each token's logprob in the distribution drawn from: log softmax(logits / temperature), at temperature 0 log softmax(logits). */
  logprobs: optional(measured(floats)),
  /** At each position the most probable `[token, logprob]` pairs, best first; null unless asked for. */
  topkLogprobs: optional(topkRows, { since: "0.29.0" }),
};

/** One continuation of a prompt. */
export interface SampledSequence extends OpenValues<typeof sampledSequence> {
  /**
   * The tokens as text, without special ones: there when the call had a tokenizer. Decoded when it is first
   * read; JSON and copies leave it out.
   */
  readonly text?: string;
  /**
   * The server's name of this draw, for the provenance of data; absent from servers before 0.26 and from streams. JSON and
   * copies leave it out.
   */
  readonly sequenceId?: string;
  /** For every token the most probable ones in its place; absent unless asked for with `topLogprobs`. */
  topLogprobs?: TokenLogprob[][];
}
export const SampledSequence: OpenSchema<SampledSequence, typeof sampledSequence> = openObject(
  "SampledSequence",
  sampledSequence,
);

const promptAltTokens = {
  /** Token ids of shape `[prompt length - 1, k]`: row i has alternatives to prompt token i + 1. */
  tokens: TensorDataSchema,
  /** Their logprobs under the model itself (temperature 1), in the same shape. */
  logprobs: measured(TensorDataSchema),
};

/** Tokens drawn at every prompt position but the first. */
export interface PromptAltTokens extends OpenValues<typeof promptAltTokens> {}
export const PromptAltTokens: OpenSchema<PromptAltTokens, typeof promptAltTokens> = openObject(
  "PromptAltTokens",
  promptAltTokens,
  { since: "0.31.0" },
);

const sampleResponse = {
  /** The continuations, `numSamples` of them. */
  sequences: array(SampledSequence),
  /** Marks the answer. */
  type: literal("sample"),
  /** The logprob of each prompt token, null for the first; null unless asked for. */
  promptLogprobs: optional(array(nullable(number))),
  /** At each prompt position the most probable `[token, logprob]` pairs, null for the first; null unless asked for. */
  topkPromptLogprobs: optional(topkRows),
  /**
   * Prompt tokens that the server had read before.
   * @default 0
   */
  promptCacheHitTokens: withDefault(integer, 0, { since: "0.23.0" }),
  /** The logprobs of the requested token ids, in their shape and layout, 0 for -1; null unless asked for. */
  targetPromptLogprobs: optional(measured(TensorDataSchema), { since: "0.30.0" }),
  /** The draws that `promptAltTokensK` asked for; null unless asked for. */
  promptAltTokens: optional(PromptAltTokens, { since: "0.31.0" }),
};

/** The continuations of a prompt. */
export interface SampleResponse extends OpenValues<typeof sampleResponse> {}
export const SampleResponse: OpenSchema<SampleResponse, typeof sampleResponse> = openObject(
  "SampleResponse",
  sampleResponse,
);

const getSamplerResponse = {
  /** Id of the sampler; also the id of its sampling session. */
  samplerId: string,
  /** The base model. */
  baseModel: string,
  /** The saved weights on top of it; null when it is the base model itself. */
  modelPath: optional(string),
};

/** What a sampler samples from. */
export interface GetSamplerResponse extends OpenValues<typeof getSamplerResponse> {}
export const GetSamplerResponse: OpenSchema<GetSamplerResponse, typeof getSamplerResponse> =
  openObject("GetSamplerResponse", getSamplerResponse, { since: "0.5.1" });
