import { ArgumentError } from "../errors/argument-error.js";
import type {
  SampledSequence,
  SamplingParams,
  SamplingParamsInput,
  TokenLogprob,
} from "./sampling.js";

/** How tokens are drawn beyond the Tinker API; servers of this project know it, others are not asked. */
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
   * Tells beside every drawn token this many of the most probable ones, at most 20.
   * @default 0
   */
  readonly topLogprobs?: number | undefined;
}

/** Under this name the most probable tokens stand among the fields that the API does not know. */
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

/** Whether parameters ask for what only servers of this project know. */
export function isExtended({ unknownFields }: SamplingParams): boolean {
  return unknownFields?.[extensionsField] !== undefined;
}

/** Puts what a server of this project tells beside the tokens where it is looked for. */
export function liftTopLogprobs(sequence: SampledSequence): void {
  const { [topLogprobsField]: given, ...others } = sequence.unknownFields ?? {};
  const rows = Array.isArray(given) ? given.map(readTopLogprobs) : [];
  if (rows.length === 0 || rows.includes(undefined)) return;
  sequence.topLogprobs = rows as TokenLogprob[][];
  if (Object.keys(others).length > 0) sequence.unknownFields = others;
  else delete sequence.unknownFields;
}

/** Pairs of tokens and logprobs, as a server tells them; undefined when they are something else. */
export function readTopLogprobs(given: unknown): TokenLogprob[] | undefined {
  const isPair = (pair: unknown): boolean =>
    Array.isArray(pair) && pair.length === 2 && pair.every((item) => typeof item === "number");
  return Array.isArray(given) && given.every(isPair) ? (given as TokenLogprob[]) : undefined;
}
