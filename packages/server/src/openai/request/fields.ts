import { invalid, unsupported } from "../openai-error.js";

/** Plain JSON. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. */
export interface JsonObject {
  readonly [key: string]: Json;
}

/** Whether a value is an object and not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Reads the fields of an object and rejects values of a wrong type or out of range, by path.
 * `null` counts as absent; unused fields are ignored.
 */
export class Fields {
  readonly json: JsonObject;
  readonly #path: string;

  constructor(json: JsonObject, path = "") {
    this.json = json;
    this.#path = path;
  }

  /** The path of a field. */
  at(name: string): string {
    return this.#path === "" ? name : `${this.#path}.${name}`;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  get(name: string): Json | undefined {
    return (Object.hasOwn(this.json, name) ? this.json[name] : null) ?? undefined;
  }

  boolean(name: string): boolean | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.#wrong(name, value, "true or false");
  }

  string(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === "string") return value;
    throw this.#wrong(name, value, "a string");
  }

  number(name: string, min: number, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= min && value <= max) return value;
    throw this.#wrong(name, value, `a number from ${min} to ${max}`);
  }

  integer(name: string, min: number, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) {
      return value;
    }
    const bounds =
      max >= Number.MAX_SAFE_INTEGER
        ? `a whole number from ${min}`
        : `a whole number from ${min} to ${max}`;
    throw this.#wrong(name, value, bounds);
  }

  choice<const C extends string>(name: string, choices: readonly C[]): C | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    const found = choices.find((choice) => choice === value);
    if (found !== undefined) return found;
    throw this.#wrong(name, value, `one of ${choices.join(", ")}`);
  }

  object(name: string): Fields | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (isObject(value)) return new Fields(value, this.at(name));
    throw this.#wrong(name, value, "an object");
  }

  list(name: string): readonly Json[] | undefined {
    const value = this.get(name);
    if (value === undefined || Array.isArray(value)) return value as readonly Json[] | undefined;
    throw this.#wrong(name, value, "a list");
  }

  /** A list of tokens, at most so many. */
  tokens(name: string, most: number): readonly number[] | undefined {
    const list = this.list(name);
    if (list && list.length > most) throw invalid(this.at(name), `has more than ${most} tokens`);
    return list && toTokens(list, this.at(name));
  }

  #wrong(name: string, value: Json, wanted: string): Error {
    return invalid(this.at(name), `must be ${wanted}, got ${brief(value)}`);
  }
}

const lastToken = 2 ** 31 - 1;

/** A list, if it is one of tokens; prompts of them are long, so it is not copied. */
export function toTokens(list: readonly Json[], path: string): readonly number[] {
  for (let index = 0; index < list.length; index++) {
    const token = list[index];
    if (Number.isInteger(token) && (token as number) >= 0 && (token as number) <= lastToken)
      continue;
    throw invalid(`${path}[${index}]`, "must be a token id");
  }
  return list as readonly number[];
}

function brief(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** Sampling options of both kinds of requests. */
export interface SamplingFields {
  readonly temperature: number;
  readonly topP: number;
  readonly topK: number;
  readonly minP: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
  readonly repetitionPenalty: number;
  readonly logitBias: ReadonlyMap<number, number>;
  readonly seed: number | null;
  readonly n: number;
  readonly stop: readonly string[];
  readonly stopTokenIds: readonly number[];
  readonly includesStop: boolean;
  readonly ignoresEos: boolean;
  readonly minTokens: number;
  readonly logprobsMode: "raw" | "processed";
  readonly logprobTokens: readonly number[];
  readonly promptLogprobs: number | null;
  readonly returnsTokenIds: boolean;
  readonly namesTokensById: boolean;
  readonly stream: boolean;
  readonly includesUsage: boolean;
  readonly continuousUsage: boolean;
}

const maxStops = 4;
const maxChoices = 128;
const maxTopLogprobs = 20;
const maxBiases = 16_384;
const maxListedTokens = 4096;

/** Unsupported fields that would change the meaning of an answer. */
const refused: Readonly<Record<string, string>> = {
  functions: "is not supported; use tools",
  function_call: "is not supported; use tool_choice",
  audio: "is not supported: models here read and write text",
  web_search_options: "is not supported",
  use_beam_search: "is not supported",
  chat_template: "is not supported: templates come with the model",
  suffix: "is not supported",
  guided_json: "is not supported; use response_format",
  guided_regex: "is not supported; use response_format",
  guided_grammar: "is not supported; use response_format",
  guided_choice: "is not supported; use response_format",
  structured_outputs: "is not supported; use response_format",
};

/** Refuses fields that must not be ignored. */
export function refuseUnsupported(fields: Fields): void {
  for (const [name, problem] of Object.entries(refused)) {
    const value = fields.get(name);
    if (value !== undefined && value !== false) throw unsupported(fields.at(name), problem);
  }
  const modalities = fields.list("modalities");
  if (modalities?.some((one) => one !== "text")) {
    throw unsupported("modalities", 'can only be ["text"]');
  }
}

/** Reads the sampling options. */
export function readSampling(fields: Fields): SamplingFields {
  const stream = fields.boolean("stream") ?? false;
  const streamOptions = fields.object("stream_options");
  if (streamOptions && !stream) {
    throw invalid("stream_options", "is allowed only with stream: true");
  }
  const promptLogprobs = fields.integer("prompt_logprobs", 0, maxTopLogprobs) ?? null;
  if (promptLogprobs !== null && stream) {
    throw invalid("prompt_logprobs", "is not given in streams; leave stream out");
  }
  return {
    temperature: fields.number("temperature", 0, 2) ?? 1,
    topP: fields.number("top_p", 0, 1) ?? 1,
    topK: Math.max(0, fields.integer("top_k", -1, Number.MAX_SAFE_INTEGER) ?? 0),
    minP: fields.number("min_p", 0, 1) ?? 0,
    frequencyPenalty: fields.number("frequency_penalty", -2, 2) ?? 0,
    presencePenalty: fields.number("presence_penalty", -2, 2) ?? 0,
    repetitionPenalty: fields.number("repetition_penalty", 0.01, 100) ?? 1,
    logitBias: readBias(fields),
    seed: readSeed(fields),
    n: fields.integer("n", 1, maxChoices) ?? 1,
    stop: readStop(fields),
    stopTokenIds: fields.tokens("stop_token_ids", maxListedTokens) ?? [],
    includesStop: fields.boolean("include_stop_str_in_output") ?? false,
    ignoresEos: fields.boolean("ignore_eos") ?? false,
    minTokens: fields.integer("min_tokens", 0, Number.MAX_SAFE_INTEGER) ?? 0,
    logprobsMode: fields.choice("logprobs_mode", ["raw", "processed"]) ?? "raw",
    logprobTokens: fields.tokens("logprob_token_ids", maxListedTokens) ?? [],
    promptLogprobs,
    returnsTokenIds: fields.boolean("return_token_ids") ?? false,
    namesTokensById: fields.boolean("return_tokens_as_token_ids") ?? false,
    stream,
    includesUsage: streamOptions?.boolean("include_usage") ?? false,
    continuousUsage: streamOptions?.boolean("continuous_usage_stats") ?? false,
  };
}

/** The maximum number of tokens: the first of these fields that is set. */
export function readMaxTokens(
  fields: Fields,
  names: readonly string[],
  min: number,
): number | null {
  for (const name of names) {
    const value = fields.integer(name, min, Number.MAX_SAFE_INTEGER);
    if (value !== undefined) return value;
  }
  return null;
}

function readSeed(fields: Fields): number | null {
  const value = fields.get("seed");
  if (value === undefined) return null;
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw invalid("seed", "must be a whole number");
}

function readStop(fields: Fields): readonly string[] {
  const value = fields.get("stop");
  if (value === undefined) return [];
  const list = Array.isArray(value) ? value : [value];
  if (list.length > maxStops) throw invalid("stop", `has more than ${maxStops} texts`);
  return list.map((text, index) => {
    const path = Array.isArray(value) ? `stop[${index}]` : "stop";
    if (typeof text !== "string") throw invalid("stop", `${path} must be a string`);
    if (text === "") throw invalid("stop", `${path} is empty; it would end every answer at once`);
    return text;
  });
}

function readBias(fields: Fields): ReadonlyMap<number, number> {
  const given = fields.object("logit_bias");
  const bias = new Map<number, number>();
  const names = Object.keys(given?.json ?? {});
  if (names.length > maxBiases) throw invalid("logit_bias", `has more than ${maxBiases} tokens`);
  for (const name of names) {
    if (!/^\d+$/.test(name)) throw invalid(`logit_bias.${name}`, "is not a token id");
    bias.set(Number(name), given?.number(name, -100, 100) ?? 0);
  }
  return bias;
}
