import { ArgumentError } from "../errors/argument-error.js";
import type {
  SampledSequence,
  SamplingParams,
  SamplingParamsInput,
  TokenLogprob,
} from "./sampling.js";

/** Sampling settings beyond the Tinker API, for servers of this project. */
export interface SamplingExtensions {
  /**
   * A JSON schema that the text of every sample fulfils, enforced token by token; a sample ends when its
   * text is whole.
   */
  readonly schema?: object | boolean | undefined;
  /**
   * Draws among tokens at least this part as probable as the most probable one, from 0 to 1.
   * @default 0
   */
  readonly minP?: number | undefined;
  /**
   * Taken from a token's logit for every time it was drawn.
   * @default 0
   */
  readonly frequencyPenalty?: number | undefined;
  /**
   * Taken from a token's logit once it was drawn.
   * @default 0
   */
  readonly presencePenalty?: number | undefined;
  /**
   * Divides positive and multiplies negative logits of tokens that were read or drawn.
   * @default 1
   */
  readonly repetitionPenalty?: number | undefined;
  /** Added to the logits of tokens, by their ids. */
  readonly logitBias?: Readonly<Record<number, number>> | undefined;
  /**
   * Tokens before which no stop ends a sequence.
   * @default 0
   */
  readonly minTokens?: number | undefined;
  /**
   * Also returns this many most probable tokens at every sampled position, at most 20. The option `topkSampleLogprobs` of
   * a sample does the same, on other servers too.
   * @default 0
   */
  readonly topLogprobs?: number | undefined;
}

/** The name of the most probable tokens among the unknown fields of a sequence. */
const topLogprobsField = "top_logprobs";

/** Names of the extensions and how they are called on the wire. */
const wireNames = {
  schema: "schema",
  minP: "min_p",
  frequencyPenalty: "frequency_penalty",
  presencePenalty: "presence_penalty",
  repetitionPenalty: "repetition_penalty",
  logitBias: "logit_bias",
  minTokens: "min_tokens",
  topLogprobs: topLogprobsField,
} as const satisfies Record<keyof SamplingExtensions, string>;

const extensionNames = Object.keys(wireNames) as (keyof SamplingExtensions)[];

/** Under this name extensions stand among the parameters on the wire. */
const extensionsField = "extensions";

/** Parameters with their extensions where the wire has them. */
export function withExtensions(
  given: SamplingParamsInput & SamplingExtensions,
): SamplingParamsInput {
  if (!extensionNames.some((name) => given[name] !== undefined)) return given;
  const params: Record<string, unknown> = { ...given };
  const extensions: Record<string, unknown> = {};
  for (const [name, wireName] of Object.entries(wireNames)) {
    const value = params[name];
    delete params[name];
    if (value === undefined) continue;
    if (name !== "schema" && name !== "logitBias" && !Number.isFinite(value)) {
      throw new ArgumentError(`samplingParams.${name}`, "must be a number");
    }
    extensions[wireName] = value;
  }
  return { ...params, unknownFields: { ...given.unknownFields, [extensionsField]: extensions } };
}

/** True for parameters that only servers of this project support. */
export function isExtended({ unknownFields }: SamplingParams): boolean {
  return unknownFields?.[extensionsField] !== undefined;
}

/** Moves the extra fields of a server of this project to where callers read them. */
export function liftTopLogprobs(sequence: SampledSequence): void {
  const { [topLogprobsField]: given, ...others } = sequence.unknownFields ?? {};
  const rows = Array.isArray(given) ? given.map(readTopLogprobs) : [];
  if (rows.length === 0 || rows.includes(undefined)) return;
  sequence.topLogprobs = rows as TokenLogprob[][];
  if (Object.keys(others).length > 0) sequence.unknownFields = others;
  else delete sequence.unknownFields;
}

/** Pairs of tokens and logprobs as a server sends them; undefined when the value has another form. */
export function readTopLogprobs(given: unknown): TokenLogprob[] | undefined {
  const isPair = (pair: unknown): boolean =>
    Array.isArray(pair) && pair.length === 2 && pair.every((item) => typeof item === "number");
  return Array.isArray(given) && given.every(isPair) ? (given as TokenLogprob[]) : undefined;
}
