import {
  array,
  bigInteger,
  boolean,
  describedBy,
  floats,
  integer,
  literal,
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
  type KeepsUnknownFields,
  type Omittable,
  type Schema,
  type ValueOf,
} from "../schema/schema.js";
import { ModelInputSchema, type ModelInput } from "./model-input.js";

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

/** How tokens are drawn. */
export interface SamplingParams extends KeepsUnknownFields {
  /** Most tokens to draw, at least 1; null leaves it to the server, which stops at the end of the context. */
  maxTokens: number | null;
  /** Makes the draw repeatable: same prompt, weights and seed, same tokens. Null draws anew each time. */
  seed: number | bigint | null;
  /** Ends a sequence: a text, texts, or token ids. What completes it is part of the output. */
  stop: string | readonly string[] | readonly number[] | null;
  /**
   * Divides the logits: below 1 is bolder, above 1 wilder, 0 always takes the most probable token.
   * @default 1
   */
  temperature: number;
  /**
   * Draws among this many most probable tokens only; -1 (or 0) among all, 1 is greedy.
   * @default -1
   */
  topK: number;
  /**
   * Draws among the most probable tokens that together have this probability, above 0 and at most 1.
   * @default 1
   */
  topP: number;
}

/** How tokens are drawn, as it may be written: what is left out has its default. */
export interface SamplingParamsInput extends Omittable<
  SamplingParams,
  Exclude<keyof SamplingParams, "unknownFields">
> {}

export const SamplingParams = describedBy<SamplingParams, SamplingParamsInput>()(
  openObject("SamplingParams", {
    maxTokens: optional(integer),
    seed: optional(bigInteger),
    stop: optional(Stop),
    temperature: withDefault(number, 1),
    topK: withDefault(integer, -1),
    topP: withDefault(number, 1),
  }),
);

/** Asks for continuations of a prompt. */
export interface SampleRequest {
  /**
   * How many continuations.
   * @default 1
   */
  numSamples: number;
  /** What to continue. */
  prompt: ModelInput;
  /** How tokens are drawn. */
  samplingParams: SamplingParams;
  /** The base model to sample from, when there is no sampling session. */
  baseModel: string | null;
  /** The saved weights to sample from, when there is no sampling session. */
  modelPath: string | null;
  /** The sampling session to sample in. */
  samplingSessionId: string | null;
  /** Number of the request within its session; the same number twice is the same sample. */
  seqId: number | bigint | null;
  /** Also returns the logprob of every prompt token. */
  promptLogprobs: boolean | null;
  /**
   * Also returns this many most probable tokens at every prompt position.
   * @default 0
   */
  topkPromptLogprobs: number;
  /** Marks the request. */
  type: "sample";
}

export const SampleRequest = describedBy<SampleRequest>()(
  strictObject("SampleRequest", {
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
  }),
);

/** A token's id and its logprob. */
export type TokenLogprob = readonly [token: number, logprob: number];

/** One continuation of a prompt. */
export interface SampledSequence extends KeepsUnknownFields {
  /** Why it ended. */
  stopReason: StopReason;
  /** The drawn token ids, without the prompt. */
  tokens: Int32Array;
  /** Each token's logprob in the distribution drawn from: log softmax(logits / temperature), at temperature 0 log softmax(logits). */
  logprobs: Float64Array | null;
  /**
   * The tokens as text, without special ones: there when the call had a tokenizer. Decoded when it is first
   * read; JSON and copies leave it out.
   */
  readonly text?: string;
  /** For every token the most probable ones in its place; absent unless asked for with `topLogprobs`. */
  topLogprobs?: TokenLogprob[][];
}

/** The text is made here, and top logprobs are an addition of this project: the API knows neither. */
export const SampledSequence = describedBy<Omit<SampledSequence, "text" | "topLogprobs">>()(
  openObject("SampledSequence", {
    stopReason: StopReason,
    tokens,
    logprobs: optional(measured(floats)),
  }),
);

/** The continuations of a prompt. */
export interface SampleResponse extends KeepsUnknownFields {
  /** The continuations, `numSamples` of them. */
  sequences: SampledSequence[];
  /** Marks the answer. */
  type: "sample";
  /** The logprob of each prompt token, null for the first; null unless asked for. */
  promptLogprobs: (number | null)[] | null;
  /** At each prompt position the most probable `[token, logprob]` pairs, null for the first; null unless asked for. */
  topkPromptLogprobs: ([number, number][] | null)[] | null;
  /**
   * Prompt tokens that the server had read before.
   * @default 0
   */
  promptCacheHitTokens: number;
}

export const SampleResponse = describedBy<SampleResponse>()(
  openObject("SampleResponse", {
    sequences: array(SampledSequence),
    type: literal("sample"),
    promptLogprobs: optional(array(nullable(number))),
    topkPromptLogprobs: optional(array(nullable(array(pair(integer, number))))),
    promptCacheHitTokens: withDefault(integer, 0, { since: "0.23.0" }),
  }),
);

/** What a sampler samples from. */
export interface GetSamplerResponse extends KeepsUnknownFields {
  /** Id of the sampler; also the id of its sampling session. */
  samplerId: string;
  /** The base model. */
  baseModel: string;
  /** The saved weights on top of it; null when it is the base model itself. */
  modelPath: string | null;
}

export const GetSamplerResponse = describedBy<GetSamplerResponse>()(
  openObject(
    "GetSamplerResponse",
    { samplerId: string, baseModel: string, modelPath: optional(string) },
    { since: "0.5.1" },
  ),
);
